#include "comm/accelerator.hpp"

#include "base/error.hpp"
#include "comm/cuda/nccl.hpp"
#include "device/devices.hpp"

#include <map>
#include <optional>
#include <utility>

namespace soybean::comm {

namespace {

struct Shared {
  int first, second; ///< ranks
  std::string host;
};

/// Two ranks with the same accelerator of the same host.
std::optional<Shared> find_shared(Comm& control, const Place& place) {
  const std::string mine = device::device_id(place.device) + "\n"; // ids hold no line ends
  const std::vector<std::byte> all = control.gather_all(std::as_bytes(std::span(mine)));
  std::map<std::pair<std::string, std::string>, int> seen;
  std::string id;
  int rank = 0;
  for (std::byte b : all) {
    if (const char c = static_cast<char>(b); c != '\n') {
      id += c;
      continue;
    }
    const std::string host = place.hosts.empty() ? "" : place.hosts.at(static_cast<std::size_t>(rank));
    const auto [other, fresh] = seen.emplace(std::pair(host, std::exchange(id, {})), rank);
    if (!fresh) return Shared{other->second, rank, host};
    ++rank;
  }
  return std::nullopt;
}

} // namespace

std::string accelerator_comm() {
  return "nccl";
}

bool devices_shared(Comm& control, const Place& place) {
  return find_shared(control, place).has_value();
}

std::unique_ptr<Comm> make_accelerator_comm(std::unique_ptr<Comm> control, const Place& place) {
  if (const std::optional<Shared> shared = find_shared(*control, place)) {
    Error error(
        fmt::format("comm: nccl, got ranks {} and {} on one accelerator{} expected an accelerator for each rank. "
                    "Use parallel.comm = \"mpi\", or start one rank per accelerator",
                    shared->first, shared->second, shared->host.empty() ? "" : " of " + shared->host));
    error.mark_on_all_ranks();
    throw error;
  }
  return std::make_unique<NcclComm>(std::move(control), place.device);
}

} // namespace soybean::comm
