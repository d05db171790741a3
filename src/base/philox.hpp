#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11).
// A number is a pure function of (seed, stream, index, step), so it does not depend on ranks, tilings or order.
// constexpr throughout, so that device code may call it too (nvcc --expt-relaxed-constexpr).
#include <array>
#include <cstdint>

namespace soybean::philox {

using Block = std::array<std::uint32_t, 4>;

/// One of the ten rounds, on the words of a counter; kernels run it on many counters at once.
constexpr void round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d, std::uint32_t key0,
                     std::uint32_t key1) {
  const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * a;
  const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c;
  a = static_cast<std::uint32_t>(p1 >> 32) ^ b ^ key0;
  b = static_cast<std::uint32_t>(p1);
  c = static_cast<std::uint32_t>(p0 >> 32) ^ d ^ key1;
  d = static_cast<std::uint32_t>(p0);
}
constexpr int rounds = 10;
using Key = std::array<std::uint32_t, 2>;
constexpr Key next(const Key& key) {
  return {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
}

/// One Philox4x32-10 block: 128 random bits for a 128-bit counter under a 64-bit key.
constexpr Block block(Block counter, Key key) {
  for (int i = 0; i < rounds; ++i) {
    round(counter[0], counter[1], counter[2], counter[3], key[0], key[1]);
    key = next(key);
  }
  return counter;
}

/// Identifies a sequence of numbers: the run's seed, what they are for (hash of a layer's or sample's name) and the
/// step.
struct Stream {
  std::uint64_t seed = 0;
  std::uint64_t name = 0;
  std::uint64_t step = 0;
};

/// The key of a stream: its seed ⊕ a mix of its name.
constexpr Key key(const Stream& s) {
  std::uint64_t key = s.name * 0x9E3779B97F4A7C15ULL;
  key = (key ^ (key >> 32)) * 0xD6E8FEB86659FD93ULL;
  key ^= (key >> 32) ^ s.seed;
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

/// 64 random bits for element `index` of a stream: words 0 and 1 of the block of counter (index, step).
constexpr std::uint64_t bits(const Stream& s, std::uint64_t index) {
  const Block r = block({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                         static_cast<std::uint32_t>(s.step), static_cast<std::uint32_t>(s.step >> 32)},
                        key(s));
  return (std::uint64_t{r[1]} << 32) | r[0];
}

/// Uniform in [0, 1), a multiple of 2^-53.
constexpr double uniform(const Stream& s, std::uint64_t index) {
  return static_cast<double>(bits(s, index) >> 11) * 0x1.0p-53;
}

/// Standard normal (Box-Muller on the uniforms 2·index and 2·index + 1 of the stream).
double normal(const Stream& s, std::uint64_t index);

} // namespace soybean::philox
