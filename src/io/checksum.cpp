#include "io/checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace soybean::io {

namespace {

constexpr std::uint64_t odd1 = 0x9E3779B97F4A7C15ULL, odd2 = 0xD6E8FEB86659FD93ULL;

std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  return std::rotl((state ^ word) * odd1, 29) * odd2;
}

} // namespace

std::uint64_t checksum(std::span<const std::byte> data) {
  std::array<std::uint64_t, 4> lanes = {1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + 32 <= data.size(); at += 32)
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::uint64_t word;
      std::memcpy(&word, data.data() + at + 8 * lane, 8);
      lanes[lane] = mix(lanes[lane], word);
    }
  std::uint64_t result = data.size();
  for (std::uint64_t lane : lanes) result = mix(result, lane);
  for (; at < data.size(); ++at) result = mix(result, static_cast<std::uint64_t>(data[at]));
  result ^= result >> 32;
  return result * odd1;
}

} // namespace soybean::io
