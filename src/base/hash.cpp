#include "base/hash.hpp"

#include <fmt/format.h>

namespace soybean {

std::string to_hex(std::uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

} // namespace soybean
