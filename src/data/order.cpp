#include "data/order.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"

namespace soybean::data {

namespace {

constexpr int rounds = 6;

std::uint64_t feistel(std::uint64_t value, int half_bits, const philox::Stream& stream) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits, right = value & mask;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t mixed = philox::bits(stream, (right << 3) | static_cast<std::uint64_t>(round));
    const std::uint64_t next = left ^ (mixed & mask);
    left = right;
    right = next;
  }
  return (left << half_bits) | right;
}

} // namespace

std::int64_t shuffled(std::int64_t count, std::int64_t position, std::int64_t epoch, std::uint64_t seed) {
  ensure(position >= 0 && position < count, "position outside the data set");
  int half_bits = 1;
  while ((std::uint64_t{1} << (2 * half_bits)) < static_cast<std::uint64_t>(count)) ++half_bits;
  const philox::Stream stream{seed, hash_text("sample order"), static_cast<std::uint64_t>(epoch)};
  std::uint64_t value = static_cast<std::uint64_t>(position);
  do value = feistel(value, half_bits, stream);
  while (value >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(value);
}

std::int64_t sample_at(const Order& order, std::int64_t step, std::int64_t row) {
  const std::int64_t position = step * order.batch + row;
  const std::int64_t epoch = position / order.samples;
  const std::int64_t within = position % order.samples;
  return order.shuffle ? shuffled(order.samples, within, epoch, order.seed) : within;
}

std::int64_t steps_of_epochs(const Order& order, std::int64_t epochs) {
  return (epochs * order.samples + order.batch - 1) / order.batch;
}

std::int64_t epoch_of(const Order& order, std::int64_t step) {
  return step * order.batch / order.samples;
}

} // namespace soybean::data
