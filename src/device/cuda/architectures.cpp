#include "device/cuda/architectures.hpp"

#include <algorithm>
#include <charconv>

namespace soybean::device::cuda {

namespace {

bool entry_fits(std::string_view entry, int major, int minor) {
  if (entry == "native" || entry.starts_with("all")) return true;
  int version = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), version);
  if (error != std::errc()) return false;
  const std::string_view rest(end, static_cast<std::size_t>(entry.data() + entry.size() - end));
  const int wanted = version, have = 10 * major + minor;
  if (rest.starts_with('a')) return have == wanted;
  const bool real = rest != "-virtual", portable = rest != "-real";
  if (rest.starts_with('f')) return have / 10 == wanted / 10 && have >= wanted;
  return (real && have / 10 == wanted / 10 && have >= wanted) || (portable && have >= wanted);
}

} // namespace

bool has_code_for(std::string_view list, int major, int minor) {
  bool any = false;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(",;"), list.size());
    const std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (entry.empty()) continue;
    if (entry_fits(entry, major, minor)) return true;
    any = true;
  }
  return !any;
}

} // namespace soybean::device::cuda
