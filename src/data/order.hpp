#pragma once
// The global order of samples: which sample is row r of the batch of step s, whatever the number of ranks. A pure
// function, so that a resumed run needs no more than the step.
#include <cstdint>

namespace soybean::data {

/// A pseudo-random permutation of [0, count): the sample at `position` of epoch `epoch`. A Feistel network over the
/// next power of four with Philox as its round function, walked until it lands inside (Black and Rogaway, "Ciphers with
/// arbitrary finite domains", 2002): no table, so millions of samples cost no memory.
std::int64_t shuffled(std::int64_t count, std::int64_t position, std::int64_t epoch, std::uint64_t seed);

struct Order {
  std::int64_t samples = 1;
  std::int64_t batch = 1;
  std::uint64_t seed = 1;
  bool shuffle = true;
};

/// Training is one endless sequence of epochs cut into batches: an incomplete last batch goes on into the next epoch.
std::int64_t sample_at(const Order& order, std::int64_t step, std::int64_t row);

/// Steps that show every sample at least `epochs` times.
std::int64_t steps_of_epochs(const Order& order, std::int64_t epochs);

/// The epoch (from 0) that the first row of `step` belongs to.
std::int64_t epoch_of(const Order& order, std::int64_t step);

} // namespace soybean::data
