// Back ends on an accelerator's memory, for collectives_test.cpp with the stand-ins, whose device memory is the host's.
#include "dist/comm_backends.hpp"

#include "comm/cuda/nccl.hpp"
#include "comm/hierarchical.hpp"
#include "comm/mpi.hpp"
#include "comm/staged.hpp"

namespace {

using namespace soybean::comm;

constexpr MessageSizes small{.chunk = 1024, .part = 512, .tree = 64};

std::unique_ptr<Comm> mpi() {
  return std::make_unique<MpiComm>(MpiOptions{.sizes = small});
}

std::unique_ptr<Comm> nccl() {
  return std::make_unique<NcclComm>(mpi(), 0);
}

std::unique_ptr<Comm> direct() {
  return std::make_unique<StagedComm>(mpi(), StagedOptions{.device_exchanges = true});
}

std::unique_ptr<Comm> staged() {
  return std::make_unique<StagedComm>(mpi());
}

/// Two ranks on each host.
std::vector<int> hosts() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> result;
  result.reserve(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) result.push_back(r / 2);
  return result;
}

} // namespace

const std::vector<soybean::test::Backend>& soybean::test::backends() {
  // The stand-ins themselves allocate.
  static const std::vector<Backend> list = {
      {"nccl", [] { return nccl(); }, 0, true},
      {"nccl for the host", [] { return nccl(); }, -1, true},
      {"staged mpi", [] { return staged(); }, 0, true},
      {"staged mpi with exchanges on the accelerator", [] { return direct(); }, 0, true},
      {"staged mpi for the host", [] { return staged(); }, -1, true},
      {"hierarchical nccl and staged mpi",
       []() -> std::unique_ptr<Comm> {
         return std::make_unique<HierarchicalComm>(Halves{nccl(), staged(), nullptr}, hosts());
       },
       0, true, true},
      {"hierarchical staged mpi",
       []() -> std::unique_ptr<Comm> {
         return std::make_unique<HierarchicalComm>(Halves{staged(), staged(), staged()}, hosts());
       },
       0, true},
  };
  return list;
}
