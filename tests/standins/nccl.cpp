// A stand-in for NCCL in tests: the calls src/comm/cuda makes, by MPI on the host's memory, in the queues of CUDA's
// stand-in. Holds callers to NCCL's rules: communicators alive, ranks and counts that agree on all members, one stream
// for a communicator and its parts, groups that nest, all messages of a group met; a communicator ends only when no
// recording of its collectives is left, but an abort ends at once what is under way.
#include "standins/nccl.hpp"

#include "standins/state.hpp"

#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

struct ncclComm {
  MPI_Comm mpi = MPI_COMM_NULL;
  int rank = 0, size = 1;
  ncclComm* root = nullptr;                                                     // the one it is part of, or itself
  cudaStream_t stream = nullptr;                                                // of the root: all calls'
  soybean::standins::Flag aborted = std::make_shared<std::atomic<bool>>(false); // shared with the root
  std::shared_ptr<int> used = std::make_shared<int>(); // also held by work that is queued or recorded
};

namespace {

using soybean::standins::enter;
using soybean::test::nccl_standin;

enum class Op : std::uint8_t { all_reduce, reduce_scatter, reduce, send, receive };

struct Call {
  Op op;
  const void* from;
  void* to;
  std::size_t count;
  ncclDataType_t type;
  int peer; // or root
  ncclComm_t comm;
};

using Calls = std::vector<Call>;
Calls waiting;                     // in the group that is open
std::vector<std::byte> aside;      // results of sums
std::vector<MPI_Request> requests; // messages of one group
std::vector<long long> announced;  // of all members
cudaStream_t group_stream = nullptr;
int depth = 0;
bool broken = false; // a call in the group failed: none of it is done

ncclResult_t fault(const char* text) {
  nccl_standin().fault = text;
  return ncclInvalidUsage;
}

/// The failure of a call that may be in a group.
ncclResult_t refuse() {
  broken = depth > 0;
  return ncclInternalError;
}

MPI_Datatype mpi_type(ncclDataType_t type) {
  switch (type) {
  case ncclFloat32:
    return MPI_FLOAT;
  case ncclFloat64:
    return MPI_DOUBLE;
  case ncclInt32:
    return MPI_INT32_T;
  default:
    return MPI_DATATYPE_NULL;
  }
}

std::size_t bytes_of(const Call& call) {
  return call.count * (call.type == ncclFloat64 ? 8 : 4);
}

/// Whether all members make this same call.
bool agreed(const Call& call) {
  constexpr int facts = 4;
  const std::array<long long, facts> mine{static_cast<long long>(call.op), static_cast<long long>(call.count),
                                          static_cast<long long>(call.type), call.peer};
  const auto size = static_cast<std::size_t>(call.comm->size);
  announced.resize(facts * size);
  MPI_Allgather(mine.data(), facts, MPI_LONG_LONG, announced.data(), facts, MPI_LONG_LONG, call.comm->mpi);
  for (std::size_t r = 0; r < size; ++r)
    if (std::memcmp(mine.data(), announced.data() + r * facts, sizeof mine) != 0) return false;
  return true;
}

ncclResult_t sum(const Call& call) {
  if (!agreed(call)) return fault("members of a collective differ in what they call");
  const int count = static_cast<int>(call.count);
  const MPI_Datatype type = mpi_type(call.type);
  aside.resize(bytes_of(call));
  bool gets = true;
  if (call.op == Op::all_reduce) {
    MPI_Allreduce(call.from, aside.data(), count, type, MPI_SUM, call.comm->mpi);
  } else if (call.op == Op::reduce_scatter) {
    MPI_Reduce_scatter_block(call.from, aside.data(), count, type, MPI_SUM, call.comm->mpi);
  } else {
    gets = call.peer == call.comm->rank;
    MPI_Reduce(call.from, aside.data(), count, type, MPI_SUM, call.peer, call.comm->mpi);
  }
  if (gets) std::memcpy(call.to, aside.data(), aside.size());
  return ncclSuccess;
}

/// Messages first, so that all of them are under way before any sum waits.
ncclResult_t run_all(const Calls& calls) {
  requests.clear();
  for (const Call& call : calls) {
    const int bytes = static_cast<int>(bytes_of(call));
    if (call.op == Op::send)
      MPI_Isend(call.from, bytes, MPI_BYTE, call.peer, 0, call.comm->mpi, &requests.emplace_back(MPI_REQUEST_NULL));
    if (call.op == Op::receive)
      MPI_Irecv(call.to, bytes, MPI_BYTE, call.peer, 0, call.comm->mpi, &requests.emplace_back(MPI_REQUEST_NULL));
  }
  std::size_t message = 0;
  for (const Call& call : calls) {
    if (call.op != Op::send && call.op != Op::receive) continue;
    MPI_Status status;
    MPI_Wait(&requests[message++], &status);
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (call.op == Op::receive && static_cast<std::size_t>(bytes) != bytes_of(call))
      return fault("a message is of another size than its receiver expects");
  }
  for (const Call& call : calls)
    if (call.op != Op::send && call.op != Op::receive)
      if (const ncclResult_t result = sum(call); result != ncclSuccess) return result;
  return ncclSuccess;
}

ncclResult_t outcome = ncclSuccess; // of what was done last

/// Whether what begins now comes to an end; if not, its queue stands still.
bool ends(const ncclComm* comm) {
  soybean::test::NcclStandin& standin = nccl_standin();
  if (standin.ending < 0) return true;
  if (standin.ending > 0) {
    --standin.ending;
    return true;
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == standin.hanging_rank) std::this_thread::sleep_for(std::chrono::hours(1));
  soybean::standins::stand_still(comm->aborted);
  return false;
}

/// Calls of a group, and the signs that their communicators are in use.
struct Work {
  Calls calls;
  std::vector<std::shared_ptr<int>> used;
};

/// Queues what waits. A stream that works at once tells the result at once, else it is an error that comes late.
ncclResult_t launch() {
  if (waiting.empty()) return ncclSuccess;
  outcome = ncclSuccess;
  Work work{.calls = waiting, .used = {}};
  for (const Call& call : waiting) work.used.push_back(call.comm->used);
  const bool queued = soybean::standins::enqueue(group_stream, "ncclGroupEnd", [work = std::move(work)] {
    if (!ends(work.calls.front().comm)) return;
    outcome = run_all(work.calls);
    if (outcome != ncclSuccess) nccl_standin().async = outcome;
  });
  waiting.clear();
  return queued ? outcome : fault("a stream that is not alive or of another accelerator");
}

ncclResult_t submit(const Call& call, cudaStream_t stream) {
  if (call.comm == nullptr || call.comm->mpi == MPI_COMM_NULL) return fault("no communicator");
  if (stream == nullptr) return fault("no stream of its own");
  ncclComm* root = call.comm->root;
  if (root->stream == nullptr) root->stream = stream;
  if (root->stream != stream) return fault("more than one stream for a communicator and its parts");
  if (mpi_type(call.type) == MPI_DATATYPE_NULL) return fault("no such type");
  if (call.peer < 0 || call.peer >= call.comm->size) return fault("no such rank");
  if (call.count > 0 && call.from == nullptr && call.to == nullptr) return fault("no memory");
  if ((call.op == Op::send || call.op == Op::receive) && depth == 0) return fault("a message outside of a group");
  waiting.push_back(call);
  group_stream = stream;
  return depth > 0 ? ncclSuccess : launch();
}

/// MPI's own communicator is left to MPI_Finalize where another thread ends this one.
ncclResult_t end(ncclComm_t comm, int& how, const char* call) {
  if (comm == nullptr || comm->mpi == MPI_COMM_NULL) return fault("no communicator");
  if (depth > 0) return fault("a communicator ends inside a group");
  if (!soybean::standins::wait_until([&] { return comm->used.use_count() == 1; }, call)) return ncclInternalError;
  int finalized = 0, main = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Is_thread_main(&main);
  if (main) MPI_Comm_free(&comm->mpi);
  delete comm;
  --nccl_standin().alive;
  ++how;
  return ncclSuccess;
}

ncclComm* make(MPI_Comm mpi, ncclComm* root) {
  auto* comm = new ncclComm{.mpi = mpi};
  comm->root = root != nullptr ? root : comm;
  comm->aborted = comm->root->aborted;
  MPI_Comm_rank(mpi, &comm->rank);
  MPI_Comm_size(mpi, &comm->size);
  ++nccl_standin().alive;
  return comm;
}

} // namespace

soybean::test::NcclStandin& soybean::test::nccl_standin() {
  static NcclStandin standin{.ending = standins::from_environment("SOYBEAN_STANDIN_ENDING", -1),
                             .hanging_rank = standins::from_environment("SOYBEAN_STANDIN_HANGING_RANK", -1)};
  return standin;
}

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (!enter(__func__)) return ncclInternalError;
  static char next = 'a';
  std::memset(id->internal, next++, sizeof id->internal);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (!enter(__func__)) return ncclInternalError;
  int size = 0, me = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (ranks != size || rank != me) return fault("not one communicator of all ranks in their order");
  ncclUniqueId first = id;
  MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (first.internal[0] == 0 || std::memcmp(&first, &id, sizeof id) != 0) return fault("not the id of rank 0");
  MPI_Comm mpi = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mpi);
  *comm = make(mpi, nullptr);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t* config) {
  if (!enter(__func__)) return ncclInternalError;
  if (comm == nullptr || comm->mpi == MPI_COMM_NULL) return fault("no communicator");
  if (config != nullptr && config->magic != 0xcafebeef) return fault("a configuration that was not initialised");
  MPI_Comm mpi = MPI_COMM_NULL;
  MPI_Comm_split(comm->mpi, color == NCCL_SPLIT_NOCOLOR ? MPI_UNDEFINED : color, key, &mpi);
  *part = mpi == MPI_COMM_NULL ? nullptr : make(mpi, comm->root);
  ++nccl_standin().splits;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!enter(__func__)) return ncclInternalError;
  return end(comm, nccl_standin().destroyed, __func__);
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!enter(__func__)) return ncclInternalError;
  if (comm != nullptr) *comm->aborted = true;
  return end(comm, nccl_standin().aborted, __func__);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (!enter(__func__)) return ncclInternalError;
  if (comm == nullptr || comm->mpi == MPI_COMM_NULL) return fault("no communicator");
  *state = nccl_standin().async;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : result == ncclRemoteError ? "remote process exited" : "invalid usage";
}

const char* ncclGetLastError(ncclComm_t) {
  return nccl_standin().fault;
}

ncclResult_t ncclGroupStart() {
  if (!enter(__func__)) return ncclInternalError;
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (!enter(__func__)) broken = true; // closed all the same
  if (depth == 0) return fault("the end of a group that was not begun");
  if (--depth > 0) return ncclSuccess;
  if (std::exchange(broken, false)) {
    waiting.clear();
    return ncclInternalError;
  }
  ++nccl_standin().groups;
  return launch();
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  if (!enter(__func__)) return refuse();
  if (op != ncclSum) return fault("not a sum");
  ++nccl_standin().all_reduces;
  return submit({Op::all_reduce, from, to, count, type, 0, comm}, stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  if (!enter(__func__)) return refuse();
  if (op != ncclSum) return fault("not a sum");
  ++nccl_standin().reduce_scatters;
  return submit({Op::reduce_scatter, from, to, count, type, 0, comm}, stream);
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  if (!enter(__func__)) return refuse();
  if (op != ncclSum) return fault("not a sum");
  ++nccl_standin().reduces;
  return submit({Op::reduce, from, to, count, type, root, comm}, stream);
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (!enter(__func__)) return refuse();
  ++nccl_standin().sends;
  return submit({Op::send, from, nullptr, count, type, peer, comm}, stream);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  if (!enter(__func__)) return refuse();
  ++nccl_standin().receives;
  return submit({Op::receive, nullptr, to, count, type, peer, comm}, stream);
}

} // extern "C"
