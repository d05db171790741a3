// Back ends on the host's memory.
#include "dist/comm_backends.hpp"

#include "comm/hierarchical.hpp"
#include "comm/mpi.hpp"
#include "comm/progressing.hpp"
#include "comm/staged.hpp"

namespace {

using namespace soybean::comm;

/// So that little data already makes many messages.
constexpr MessageSizes small{.chunk = 1024, .part = 512, .tree = 64};

std::unique_ptr<Comm> mpi(const MpiOptions& options = {}) {
  return std::make_unique<MpiComm>(options);
}

/// Host of rank r: three ranks on each, the last host may have fewer.
std::unique_ptr<Comm> three_per_host() {
  std::vector<int> hosts;
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  hosts.reserve(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) hosts.push_back(r / 3);
  Halves halves{.inside = mpi(), .between = mpi({.sizes = small}), .after = mpi({.sizes = small})};
  return std::make_unique<HierarchicalComm>(std::move(halves), hosts);
}

/// As on an accelerator, but from and to the host's memory.
std::unique_ptr<Comm> staged(std::unique_ptr<Comm> host) {
  return std::make_unique<StagedComm>(std::move(host), StagedOptions{.always = true});
}

std::unique_ptr<Comm> progressing(std::unique_ptr<Comm> below) {
  return std::make_unique<ProgressingComm>(std::move(below));
}

} // namespace

const std::vector<soybean::test::Backend>& soybean::test::backends() {
  static const std::vector<Backend> list = {
      {"mpi", [] { return mpi(); }},
      {"mpi in small messages", [] { return mpi({.sizes = small}); }},
      {"mpi_library", [] { return mpi({.library = true}); }, -1, true},
      {"mpi_library in small messages", [] { return mpi({.library = true, .sizes = small}); }, -1, true},
      {"hierarchical", [] { return three_per_host(); }},
      {"progressing mpi", [] { return progressing(mpi({.sizes = small})); }},
      {"progressing mpi_library", [] { return progressing(mpi({.library = true})); }, -1, true},
      {"progressing hierarchical", [] { return progressing(three_per_host()); }},
      {"staged mpi", [] { return staged(mpi({.sizes = small})); }},
      {"staged mpi_library", [] { return staged(mpi({.library = true})); }, -1, true},
      {"staged hierarchical", [] { return staged(three_per_host()); }},
  };
  return list;
}
