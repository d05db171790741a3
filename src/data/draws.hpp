#pragma once
// The random numbers of one augmentation step of one sample in one epoch, one after the other.
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "data/augment.hpp"

#include <cstdint>

namespace soybean::data {

class Draws {
public:
  Draws(const AugmentKey& key, std::size_t place)
      : stream_{key.seed, hash_text("augmentation") + (static_cast<std::uint64_t>(place) << 16),
                static_cast<std::uint64_t>(key.epoch)},
        sample_(static_cast<std::uint64_t>(key.sample)) {}

  double uniform() { ///< [0, 1)
    const double number = philox::uniform(stream_, sample_);
    ++stream_.name;
    return number;
  }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(uniform() * static_cast<double>(n)); }

private:
  philox::Stream stream_;
  std::uint64_t sample_;
};

} // namespace soybean::data
