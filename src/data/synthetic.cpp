// Synthetic samples that can be learnt: element i of sample s of class c is
//     prototype(c, i) + noise · n(s, i),   both uniform with the named standard deviation,
// the class a hash of the sample's id. Pure functions of (seed, class or id, index): any rank computes any part.
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "data/part.hpp"
#include "data/reader.hpp"

#include <array>
#include <cmath>

namespace soybean::data {

namespace {

/// Element `index` of a stream of uniform numbers of unit variance; two come from one Philox call.
class UnitNoise {
public:
  explicit UnitNoise(const philox::Stream& stream) : stream_(stream) {}

  double at(std::int64_t index) {
    const std::int64_t block = index >> 1;
    if (block != block_) {
      bits_ = philox::bits(stream_, static_cast<std::uint64_t>(block));
      block_ = block;
    }
    const std::uint32_t half = static_cast<std::uint32_t>(index & 1 ? bits_ >> 32 : bits_);
    return (half * 0x1.0p-31 - 1.0) * 1.7320508075688772; // uniform in [-1, 1) times sqrt(3)
  }

private:
  philox::Stream stream_;
  std::int64_t block_ = -1;
  std::uint64_t bits_ = 0;
};

class SyntheticReader : public Reader {
public:
  explicit SyntheticReader(const Synthetic& options) : options_(options) {
    info_ = {options.sample, options.train_samples, options.validation_samples};
  }

  const Info& info() const override { return info_; }

  void read_inputs(Split split, std::span<const std::int64_t> ids, const Box& part, DType type,
                   void* out) const override {
    std::int64_t written = 0;
    for (std::int64_t id : ids) {
      UnitNoise prototype({options_.seed, hash_text("prototype"), static_cast<std::uint64_t>(class_of(split, id))});
      UnitNoise noise({options_.seed, hash_text("noise"), key(split, id)});
      for_each_run(options_.sample, part, [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t i = first; i < first + count; ++i)
          store(type, out, written++, prototype.at(i) + options_.noise * noise.at(i));
      });
    }
  }

  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* out) const override {
    for (std::size_t i = 0; i < ids.size(); ++i) out[i] = static_cast<std::int32_t>(class_of(split, ids[i]));
  }

private:
  static std::uint64_t key(Split split, std::int64_t id) {
    return static_cast<std::uint64_t>(2 * id + (split == Split::validation ? 1 : 0));
  }
  std::int64_t class_of(Split split, std::int64_t id) const {
    const std::uint64_t r = philox::bits({options_.seed, hash_text("class"), 0}, key(split, id));
    return static_cast<std::int64_t>(r % static_cast<std::uint64_t>(options_.classes));
  }

  Synthetic options_;
  Info info_;
};

} // namespace

std::unique_ptr<Reader> make_synthetic_reader(const Synthetic& options) {
  ensure(options.classes >= 1 && options.train_samples >= 1, "synthetic data without classes or samples");
  return std::make_unique<SyntheticReader>(options);
}

} // namespace soybean::data
