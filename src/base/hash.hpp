#pragma once
// A 64-bit FNV-1a hash of text: names layers for random numbers, plans for their files, programs for the agreement of
// ranks. Stable across machines and versions; not cryptographic.
#include <cstdint>
#include <string>
#include <string_view>

namespace soybean {

constexpr std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ULL) {
  std::uint64_t h = seed;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

std::string to_hex(std::uint64_t hash); ///< 16 hexadecimal digits

} // namespace soybean
