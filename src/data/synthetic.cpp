// Synthetic samples that can be learnt: element i of sample s of class c is
//     prototype(c, i) + noise · n(s, i),   both uniform with the named standard deviation,
// the class a hash of the sample's id. Of tokens each is followed by the same one, but every eighth by any. Targets are
// numbers from 0 to 1, a list of them for every class. Pure functions of (seed, class or id, index): any rank computes
// any part.
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "data/part.hpp"
#include "data/reader.hpp"

#include <algorithm>
#include <cstddef>

namespace soybean::data {

namespace {

constexpr std::int64_t span = 128; ///< elements made side by side; even

/// Elements first, …, first + span of a stream of uniform numbers of unit variance; two come from one Philox call,
/// whose rounds are done for many counters at once. first is even.
void unit_noise(const philox::Stream& stream, std::int64_t first, double* out) {
  constexpr int lanes = span / 2;
  std::uint32_t a[lanes], b[lanes], c[lanes], d[lanes];
#pragma omp simd
  for (int i = 0; i < lanes; ++i) {
    const auto counter = static_cast<std::uint64_t>(first / 2 + i);
    a[i] = static_cast<std::uint32_t>(counter);
    b[i] = static_cast<std::uint32_t>(counter >> 32);
    c[i] = static_cast<std::uint32_t>(stream.step);
    d[i] = static_cast<std::uint32_t>(stream.step >> 32);
  }
  philox::Key key = philox::key(stream);
  for (int round = 0; round < philox::rounds; ++round) {
    const std::uint32_t key0 = key[0], key1 = key[1];
#pragma omp simd
    for (int i = 0; i < lanes; ++i) philox::round(a[i], b[i], c[i], d[i], key0, key1);
    key = philox::next(key);
  }
  // Uniform in [-1, 1) times sqrt(3): word·2⁻³¹ − 1, whose numerator is a signed word.
  const auto unit = [](std::uint32_t word) {
    return static_cast<std::int32_t>(word ^ 0x80000000u) * 0x1.0p-31 * 1.7320508075688772;
  };
#pragma omp simd
  for (std::ptrdiff_t i = 0; i < lanes; ++i) {
    out[2 * i] = unit(a[i]);
    out[2 * i + 1] = unit(b[i]);
  }
}

class SyntheticReader : public Reader {
public:
  explicit SyntheticReader(const Synthetic& options) : options_(options) {
    info_ = {options.sample, options.train_samples, options.validation_samples};
  }

  const Info& info() const override { return info_; }

  void read_inputs(Split split, std::span<const std::int64_t> ids, const Box& part, DType type,
                   void* out) const override {
    type == DType::f64 ? read(split, ids, part, static_cast<double*>(out))
                       : read(split, ids, part, static_cast<float*>(out));
  }

  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* out) const override {
    for (std::size_t i = 0; i < ids.size(); ++i) out[i] = static_cast<std::int32_t>(class_of(split, ids[i]));
  }

  void read_tokens(Split split, std::span<const std::int64_t> ids, const Box& part, std::int64_t shift,
                   std::int32_t* out) const override {
    const auto vocabulary = static_cast<std::uint64_t>(options_.vocabulary);
    const std::int64_t begin = part.offsets[0] + shift, end = begin + part.extents[0];
    for (const std::int64_t id : ids) {
      const philox::Stream jumps{options_.seed, hash_text("token"), key(split, id)};
      const philox::Stream next{options_.seed, hash_text("next token"), 0};
      std::uint64_t token = 0;
      for (std::int64_t i = 0; i < end; ++i) {
        const std::uint64_t draw = philox::bits(jumps, static_cast<std::uint64_t>(i));
        token = (i == 0 || draw % jump_every == 0 ? draw / jump_every : philox::bits(next, token)) % vocabulary;
        if (i >= begin) *out++ = static_cast<std::int32_t>(token);
      }
    }
  }

  void read_targets(Split split, std::span<const std::int64_t> ids, const Box& part, DType type,
                    void* out) const override {
    std::int64_t at = 0;
    for (std::int64_t id : ids) {
      const philox::Stream targets{options_.seed, hash_text("targets"),
                                   static_cast<std::uint64_t>(class_of(split, id))};
      for_each_run(options_.target, part, [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t i = first; i < first + count; ++i)
          store(type, out, at++, philox::uniform(targets, static_cast<std::uint64_t>(i)));
      });
    }
  }

private:
  template<class T>
  void read(Split split, std::span<const std::int64_t> ids, const Box& part, T* out) const {
    for (std::int64_t id : ids) {
      const philox::Stream prototype{options_.seed, hash_text("prototype"),
                                     static_cast<std::uint64_t>(class_of(split, id))};
      const philox::Stream noise{options_.seed, hash_text("noise"), key(split, id)};
      for_each_run(options_.sample, part, [&](std::int64_t first, std::int64_t count) {
        double mean[span], deviation[span];
        for (std::int64_t at = first & ~std::int64_t{1}; at < first + count; at += span) {
          unit_noise(prototype, at, mean);
          unit_noise(noise, at, deviation);
          const std::int64_t end = std::min(span, first + count - at);
          for (std::int64_t i = std::max<std::int64_t>(0, first - at); i < end; ++i)
            *out++ = static_cast<T>(mean[i] + options_.noise * deviation[i]);
        }
      });
    }
  }

  static constexpr std::uint64_t jump_every = 8;

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
