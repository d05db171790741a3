#include "comm/cuda/nccl.hpp"

#include "base/error.hpp"
#include "comm/local.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <numeric>
#include <thread>
#include <utility>

namespace soybean::comm {

namespace {

ncclDataType_t type_of(DType type) {
  switch (type) {
  case DType::f32:
    return ncclFloat32;
  case DType::f64:
    return ncclFloat64;
  case DType::i32:
    return ncclInt32;
  }
  throw Bug("unknown DType");
}

cudaStream_t handle_of(const device::Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}

std::byte* at(void* data, std::int64_t elements, DType type) {
  return static_cast<std::byte*>(data) + elements * size_of(type);
}

std::int64_t place_in(const std::vector<int>& group, int rank) {
  const auto found = std::find(group.begin(), group.end(), rank);
  if (found == group.end()) ensure(false, "this rank starts a collective of a group it is not in");
  return found - group.begin();
}

/// NCCL's calls are for this accelerator, whatever the thread did before.
void use(int device) {
  const cudaError_t code = cudaSetDevice(device);
  if (code != cudaSuccess) fail_running("cudaSetDevice: failed, {}", cudaGetErrorString(code));
}

} // namespace

NcclComm::NcclComm(std::unique_ptr<Comm> control, int device)
    : LayeredComm(std::move(control)), device_(device), everyone_(static_cast<std::size_t>(size())), stream_(device) {
  std::iota(everyone_.begin(), everyone_.end(), 0);
  ncclUniqueId id{};
  use(device_);
  if (rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  below().broadcast(&id, sizeof id, 0);
  ncclComm_t world = nullptr;
  check(ncclCommInitRank(&world, size(), id, rank()), "ncclCommInitRank");
  world_ = Owned(world);
}

// While an error unwinds, other ranks may never come to the end of what is under way.
NcclComm::~NcclComm() {
  if (std::uncaught_exceptions() > 0 || !flows_.empty()) abort();
  try {
    if (!failed_) stream_.synchronise();
  } catch (const std::exception&) {
    abort();
  }
  if (aborting_.valid()) aborting_.wait_for(std::chrono::seconds(10)); // recordings are gone by now: else it is left
}

void NcclComm::abort() noexcept {
  LayeredComm::abort();
  failed_ = true;
  if (std::exchange(in_group_, false)) static_cast<void>(ncclGroupEnd()); // inside one, aborting would wait for its end
  if (!world_) return;
  try {
    std::vector<ncclComm_t> comms;
    comms.reserve(groups_.size() + 1);
    for (auto& [group, owned] : groups_) comms.push_back(owned.release());
    comms.push_back(world_.release());
    std::promise<void> over;
    aborting_ = over.get_future();
    const auto abort_all = [device = device_, comms = std::move(comms)](std::promise<void> done) {
      static_cast<void>(cudaSetDevice(device));
      for (ncclComm_t comm : comms) static_cast<void>(ncclCommAbort(comm));
      done.set_value();
    };
    std::thread(abort_all, std::move(over)).detach();
  } catch (const std::exception&) { // no thread to be had: the process is about to end anyway
    return;
  }
}

void NcclComm::give_up(const std::string& what) {
  abort();
  throw Error(what, ExitCode::failed);
}

void NcclComm::check(ncclResult_t code, const char* call) {
  if (code == ncclSuccess) return;
  const char* last = ncclGetLastError(world_ ? world_.get() : nullptr);
  give_up(fmt::format("{}: failed on rank {}, {} ({}). NCCL_DEBUG=INFO shows more", call, rank(),
                      ncclGetErrorString(code), last != nullptr ? last : "no details"));
}

void NcclComm::begin_group() {
  check(ncclGroupStart(), "ncclGroupStart");
  in_group_ = true;
}

void NcclComm::end_group() {
  in_group_ = false;
  check(ncclGroupEnd(), "ncclGroupEnd");
}

void NcclComm::check_errors() {
  if (failed_) fail_running("comm: nccl was given up after an error");
  if (!world_) return; // still being made
  const auto ask = [&](ncclComm_t comm) {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    if (state != ncclInProgress) check(state, "a collective of NCCL");
  };
  ask(world_.get());
  for (const auto& [group, owned] : groups_) ask(owned.get());
}

/// All ranks split at the same groups: those that some rank lacks. The members of a group have it or lack it together.
void NcclComm::prepare(const std::vector<std::vector<int>>& groups) {
  std::vector<std::byte> lacking;
  std::map<std::vector<int>, bool> seen;
  for (const std::vector<int>& group : groups) {
    const bool missing = group.size() > 1 && group != everyone_ && groups_.count(group) == 0 && !seen[group];
    seen[group] = true;
    lacking.push_back(std::byte{missing});
  }
  const std::vector<std::byte> all = gather_all(lacking);
  ensure(all.size() == groups.size() * everyone_.size(), "nccl: all ranks prepare as many groups");
  for (std::size_t g = 0; g < groups.size(); ++g) {
    bool any = false;
    for (std::size_t r = 0; r < everyone_.size(); ++r) any |= all[r * groups.size() + g] != std::byte{0};
    if (any) split(groups[g], lacking[g] != std::byte{0});
  }
}

void NcclComm::split(const std::vector<int>& group, bool missing) {
  const int color = missing ? *std::min_element(group.begin(), group.end()) : NCCL_SPLIT_NOCOLOR;
  const int key = missing ? static_cast<int>(place_in(group, rank())) : 0;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1; // one queue, so parts never run beside each other
  ncclComm_t part = nullptr;
  use(device_);
  check(ncclCommSplit(world_.get(), color, key, &part, &config), "ncclCommSplit");
  if (missing) groups_[group] = Owned(part);
}

ncclComm_t NcclComm::communicator(const std::vector<int>& group) const {
  if (group == everyone_) return world_.get();
  const auto found = groups_.find(group);
  if (found == groups_.end()) ensure(false, "nccl: a collective of a group that was not prepared");
  return found->second.get();
}

/// Kept back until the next fence, so that the watchdog can name it; a program without fences reuses the oldest, but
/// not for a recording: those in front of it in ended_ are the ones that were not recorded.
std::unique_ptr<NcclComm::Flow> NcclComm::idle_flow() {
  constexpr std::size_t most = 1024;
  Flows& from = idle_.empty() && ended_.size() >= most && !recording_ ? ended_ : idle_;
  if (from.empty()) return std::make_unique<Flow>(device_);
  const auto taken = &from == &ended_ ? from.begin() : from.end() - 1;
  std::unique_ptr<Flow> flow = std::move(*taken);
  from.erase(taken);
  return flow;
}

Token NcclComm::start(const Collective& collective, const device::Exec& exec) {
  std::unique_ptr<Flow> flow = idle_flow();
  flow->token = started_++;
  flow->below = -1;
  flow->exec = &exec;
  flow->label = collective.label;
  if (!exec.on_device()) {
    flow->below = below().start(collective, exec);
  } else {
    if (exec.device() != device_) ensure(false, "nccl: an Exec of another accelerator");
    if (failed_) check_errors();
    flow->reached.record(exec.stream());
    stream_.wait(flow->reached);
    use(device_);
    queue(collective);
    flow->ended.record(stream_);
  }
  flows_.push_back(std::move(flow));
  return flows_.back()->token;
}

void NcclComm::queue(const Collective& c) {
  copy_local(c, rank(), stream_);
  count(c);
  if (c.kind == Kind::exchange) return exchange(c);
  if (c.group.size() == 1) return;
  const ncclComm_t comm = communicator(c.group);
  if (c.kind == Kind::reduce_scatter) return reduce_scatter(c, comm);
  if (c.counts.at(0) == 0) return;
  check(ncclAllReduce(c.send, c.recv, static_cast<std::size_t>(c.counts[0]), type_of(c.dtype), ncclSum, comm,
                      handle_of(stream_)),
        "ncclAllReduce");
}

void NcclComm::reduce_scatter(const Collective& c, ncclComm_t comm) {
  if (c.counts.size() != c.group.size()) ensure(false, "reduce_scatter takes one count per member");
  const std::int64_t first = c.counts.front();
  if (std::count(c.counts.begin(), c.counts.end(), first) == std::ssize(c.counts)) {
    if (first == 0) return;
    check(ncclReduceScatter(c.send, c.recv, static_cast<std::size_t>(first), type_of(c.dtype), ncclSum, comm,
                            handle_of(stream_)),
          "ncclReduceScatter");
    return;
  }
  begin_group();
  std::int64_t begin = 0;
  for (std::size_t m = 0; m < c.counts.size(); ++m) {
    if (c.counts[m] > 0)
      check(ncclReduce(at(c.send, begin, c.dtype), c.recv, static_cast<std::size_t>(c.counts[m]), type_of(c.dtype),
                       ncclSum, static_cast<int>(m), comm, handle_of(stream_)),
            "ncclReduce");
    begin += c.counts[m];
  }
  end_group();
}

void NcclComm::exchange(const Collective& c) {
  const auto carries = [&](const Message& m) { return m.peer != rank() && m.count > 0; };
  if (!std::any_of(c.sends.begin(), c.sends.end(), carries) &&
      !std::any_of(c.receives.begin(), c.receives.end(), carries))
    return;
  const ncclComm_t comm = world_.get();
  begin_group();
  for (const Message& m : c.sends)
    if (carries(m))
      check(ncclSend(m.data, static_cast<std::size_t>(m.count), type_of(c.dtype), m.peer, comm, handle_of(stream_)),
            "ncclSend");
  for (const Message& m : c.receives)
    if (carries(m))
      check(ncclRecv(m.data, static_cast<std::size_t>(m.count), type_of(c.dtype), m.peer, comm, handle_of(stream_)),
            "ncclRecv");
  end_group();
}

void NcclComm::count(const Collective& c) {
  std::int64_t elements = 0;
  if (c.kind == Kind::exchange) {
    for (const Message& m : c.receives)
      if (m.peer != rank()) elements += m.count;
  } else {
    const auto p = static_cast<std::int64_t>(c.group.size());
    const std::int64_t me = place_in(c.group, rank()), n = c.counts.at(0);
    elements = c.kind == Kind::all_reduce ? 2 * (p - 1) * (n * (me + 1) / p - n * me / p)
                                          : (p - 1) * c.counts.at(static_cast<std::size_t>(me));
  }
  (c.control ? counted_.control_bytes : counted_.received_bytes) += elements * size_of(c.dtype);
}

NcclComm::Flows::const_iterator NcclComm::find(Token token) const {
  const auto found = std::find_if(flows_.begin(), flows_.end(), [&](const auto& flow) { return flow->token == token; });
  if (found == flows_.end()) ensure(false, fmt::format("wait for token {}, which is not under way", token));
  return found;
}

bool NcclComm::done(Token token) const {
  const Flow& flow = **find(token);
  return flow.below >= 0 ? below().done(flow.below) : flow.ended.done();
}

bool NcclComm::poll() {
  constexpr double interval = 0.1; // seconds; asking costs a little, and an error ends the run anyway
  if (const double now = seconds_now(); now - checked_ > interval) {
    checked_ = now;
    check_errors();
  }
  return below().poll();
}

void NcclComm::wait(Token token) {
  Flow& flow = **find(token);
  if (flow.below >= 0) {
    const double begin = seconds_now();
    below().wait(flow.below);
    waiting_seconds_ += seconds_now() - begin;
  } else {
    check_errors();
    flow.exec->stream().wait(flow.ended);
  }
  const auto found = flows_.begin() + (find(token) - flows_.cbegin());
  (flow.below >= 0 ? idle_ : ended_).push_back(std::move(*found));
  flows_.erase(found);
}

void NcclComm::fence(const device::Event& event) {
  const auto under_way = [](const auto& flow) { return !flow->ended.done(); };
  poll_until([&] { return event.done(); },
             [&] {
               const auto stuck = std::find_if(ended_.begin(), ended_.end(), under_way);
               report_stall(stuck != ended_.end() ? "'" + (*stuck)->label + "'" : "a kernel or a collective");
             });
  const auto first = std::find_if(ended_.begin(), ended_.end(), under_way);
  std::move(ended_.begin(), first, std::back_inserter(idle_));
  ended_.erase(ended_.begin(), first);
}

void NcclComm::stalled(Token token) {
  const Flow& flow = **find(token);
  if (flow.below >= 0) below().stalled(flow.below);
  report_stall("'" + flow.label + "'");
}

void NcclComm::report_stall(const std::string& what) {
  give_up(fmt::format("comm: {} stalled on rank {}, got no end of it for {:g} s, expected all ranks of its group to "
                      "take part. Look at what the other ranks last reported: one may have died, hang or lag behind",
                      what, rank(), stall_seconds));
}

void NcclComm::begin_recording() {
  ensure(flows_.empty(), "nccl: a recording begins while collectives are under way");
  recording_ = true;
  before_recording_ = counted_;
  ended_before_recording_ = ended_.size();
}

// Events that were recorded mark nothing that could be waited for: they are for reuse at once.
Counters NcclComm::end_recording() {
  ensure(flows_.empty(), "nccl: a recording ends while collectives are under way");
  recording_ = false;
  const auto first = ended_.begin() + static_cast<std::ptrdiff_t>(ended_before_recording_);
  std::move(first, ended_.end(), std::back_inserter(idle_));
  ended_.erase(first, ended_.end());
  Counters step;
  step.received_bytes = counted_.received_bytes - before_recording_.received_bytes;
  step.control_bytes = counted_.control_bytes - before_recording_.control_bytes;
  counted_ = before_recording_;
  return step;
}

void NcclComm::count_launch(const Counters& step) {
  counted_.received_bytes += step.received_bytes;
  counted_.control_bytes += step.control_bytes;
}

Counters NcclComm::counters() const {
  Counters counters = below().counters();
  counters.received_bytes += counted_.received_bytes;
  counters.control_bytes += counted_.control_bytes;
  counters.waiting_seconds = waiting_seconds_;
  return counters;
}

} // namespace soybean::comm
