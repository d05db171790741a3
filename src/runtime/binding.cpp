#include "runtime/binding.hpp"

#include "base/error.hpp"
#include "device/devices.hpp"
#include "runtime/host.hpp"

#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>

namespace soybean::runtime {
namespace {

constexpr std::string_view one_each = "start one rank per GPU (srun --ntasks-per-node=GPUS --gpus-per-node=GPUS "
                                      "--gpu-bind=none, mpirun --map-by ppr:GPUS:node)";

/// Texts of all ranks, in rank order. Collective.
std::vector<std::string> gather_texts(comm::Comm& comm, const std::string& mine) {
  const std::int64_t length = comm::max(comm, static_cast<std::int64_t>(mine.size())) + 1;
  std::vector<char> padded(static_cast<std::size_t>(length), '\0');
  std::copy(mine.begin(), mine.end(), padded.begin());
  const std::vector<std::byte> all = comm.gather_all(std::as_bytes(std::span(padded)));
  std::vector<std::string> texts;
  texts.reserve(static_cast<std::size_t>(comm.size()));
  for (int r = 0; r < comm.size(); ++r) texts.emplace_back(reinterpret_cast<const char*>(all.data()) + r * length);
  return texts;
}

/// Host, what is wrong with the driver and identities, a line each; the other way in `parse`.
std::string describe_own() {
  std::string text = host_name() + '\n' + device::driver_fault();
  for (int d = 0; d < device::device_count(); ++d) text += '\n' + device::device_id(d);
  return text;
}

Visible parse(const std::string& text) {
  Visible visible;
  std::size_t begin = 0;
  for (int number = 0; begin <= text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (number < 2)
      (number == 0 ? visible.host : visible.fault) = std::move(line);
    else
      visible.devices.push_back(std::move(line));
    begin = end + 1;
  }
  return visible;
}

/// Why this rank cannot compute on its accelerator; empty if it can.
std::string fault_of(int device) {
  const device::DeviceFacts facts = device::device_facts(device);
  if (facts.supported) return "";
  return fmt::format("{} (compute capability {}.{})", facts.name, facts.major, facts.minor);
}

[[noreturn]] void fail_everywhere(const std::string& text) {
  Error error(text);
  error.mark_on_all_ranks();
  throw error;
}

void check_support(comm::Comm& comm, int device) {
  const std::vector<std::string> faults = gather_texts(comm, fault_of(device));
  for (int r = 0; r < comm.size(); ++r)
    if (!faults[r].empty())
      fail_everywhere(
          fmt::format("run.device: GPU of rank {}, got {} expected one that this program was built for ({}). "
                      "build with CMAKE_CUDA_ARCHITECTURES set to its compute capability",
                      r, faults[r], device::device_facts(device).architectures));
}

/// Accelerators of ranks, rank after rank.
class Assignment {
public:
  explicit Assignment(const std::vector<Visible>& ranks) : ranks_(ranks), chosen_(ranks.size(), -1) {}

  /// Gives the rank one that no other has, the first such of those it sees; where there is none, one whose ranks can be
  /// moved to others. False: every rank can not have its own.
  bool take_own(std::size_t rank) {
    tried_.clear();
    return take(rank);
  }
  /// Gives the rank the first one that the fewest have, and tells one of these.
  std::size_t share(std::size_t rank) {
    std::size_t best = 0;
    for (std::size_t d = 1; d < ranks_[rank].devices.size(); ++d)
      if (users(rank, d).size() < users(rank, best).size()) best = d;
    chosen_[rank] = static_cast<int>(best);
    users(rank, best).push_back(rank);
    return users(rank, best).front();
  }
  const std::string& device_of(std::size_t rank) const {
    return ranks_[rank].devices[static_cast<std::size_t>(chosen_[rank])];
  }
  const std::vector<int>& chosen() const { return chosen_; }

private:
  std::vector<std::size_t>& users(std::size_t rank, std::size_t device) {
    return users_[{ranks_[rank].host, ranks_[rank].devices[device]}];
  }
  bool take(std::size_t rank) {
    const std::size_t count = ranks_[rank].devices.size();
    for (std::size_t d = 0; d < count; ++d)
      if (users(rank, d).empty()) return give(rank, d);
    for (std::size_t d = 0; d < count; ++d) {
      if (!tried_.insert({ranks_[rank].host, ranks_[rank].devices[d]}).second || users(rank, d).size() > 1) continue;
      if (take(users(rank, d).front())) return give(rank, d);
    }
    return false;
  }
  bool give(std::size_t rank, std::size_t device) {
    users(rank, device).assign(1, rank);
    chosen_[rank] = static_cast<int>(device);
    return true;
  }

  const std::vector<Visible>& ranks_;
  std::vector<int> chosen_;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> users_; ///< by host and identity
  std::set<std::pair<std::string, std::string>> tried_;                           ///< in this search
};

} // namespace

std::vector<int> bind_devices(const std::vector<Visible>& ranks, bool sharing) {
  Assignment assignment(ranks);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto& [host, devices, fault] = ranks[r];
    if (devices.empty())
      fail("run.device: rank {} on host {}, got no GPU expected one. {}", r, host,
           fault.empty() ? "check nvidia-smi, CUDA_VISIBLE_DEVICES and the job's --gpus options" : fault);
    if (assignment.take_own(r)) continue;
    const std::size_t sharer = assignment.share(r);
    if (!sharing)
      fail("run.device: ranks {} and {} on host {}, got the same GPU ({}) expected one for each. {}, or set "
           "run.share_devices = true",
           sharer, r, host, assignment.device_of(r), one_each);
  }
  return assignment.chosen();
}

int choose_device(comm::Comm& comm, const BindingInput& input) {
  if (input.device != "gpu" &&
      (input.device == "cpu" || input.precision == DType::f64 || device::accelerator().empty())) {
    if (!device::accelerator().empty() && input.precision != DType::f64)
      fail_everywhere("run.device: cpu, got a program built for GPUs expected one built for CPUs. build with cmake "
                      "--preset host, or set train.precision = \"fp64\"");
    if (input.tf32)
      fail_everywhere("train.precision: on CPUs, got \"tf32\" expected \"fp32\" or \"fp64\". tf32 is a format of GPUs, "
                      "for a program built with cmake --preset cuda");
    return -1;
  }
  if (device::accelerator().empty())
    fail_everywhere("run.device: gpu, got a program built without GPUs expected one built with them. build with cmake "
                    "--preset cuda");
  if (input.precision == DType::f64)
    fail_everywhere(
        "run.device: gpu, got train.precision = \"fp64\" expected \"fp32\". fp64 runs the reference kernels, "
        "which are for CPUs");
  std::vector<Visible> ranks;
  for (const std::string& text : gather_texts(comm, describe_own())) ranks.push_back(parse(text));
  int device = -1;
  try {
    device = bind_devices(ranks, input.sharing)[comm.rank()];
  } catch (const Error& error) {
    fail_everywhere(error.what()); // found alike by all ranks
  }
  check_support(comm, device);
  return device;
}

} // namespace soybean::runtime
