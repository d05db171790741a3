#pragma once
// Fills this rank's parts of one batch after the other, ahead of time on a thread of its own. Knows neither graphs nor
// layouts: parts are boxes of the global batch, their bytes are in row-major logical order.
#include "base/types.hpp"
#include "config/options.hpp"
#include "data/mix.hpp"
#include "data/order.hpp"
#include "data/reader.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace soybean::data {

/// partner_labels, shares: of mixed samples, see mix.hpp; what is not mixed has itself as its partner.
enum class Content : std::uint8_t { inputs, labels, partner_labels, shares, targets, weights };

/// A part of the batch this rank needs: `box` of [batch, sample…] for inputs and targets, of [batch] for labels and
/// weights. Tokens, i32, have labels of [batch, positions]: those that follow.
struct Part {
  Content content;
  Box box;
  DType dtype; ///< labels of any kind and tokens: i32
};

struct Batch {
  std::int64_t step = 0;
  std::int64_t rows = 0; ///< rows that are samples; the rest is padding of weight 0
  std::vector<std::vector<std::byte>> parts;
};

/// Batches, read on the calling thread and threads − 1 others. `reader` and `options` are to outlive it. One
/// batch at a time: threads and their memory are its own, so it can be moved but not copied.
class BatchSource {
public:
  /// Training batches: step s takes the samples that `order` names, augmented, each row with weight 1/batch.
  static BatchSource training(const Reader& reader, const config::DataOptions& options, Order order, int threads = 1);
  /// Validation batches: sample s·batch + r in turn, weight 1/samples; rows past the end repeat the last with weight 0.
  static BatchSource validation(const Reader& reader, const config::DataOptions& options, std::int64_t batch,
                                int threads = 1);

  BatchSource(BatchSource&&) noexcept;
  ~BatchSource();

  std::int64_t steps() const; ///< validation only: batches that cover the split
  void read(std::int64_t step, const std::vector<Part>& parts, Batch& batch) const;

private:
  struct Own; ///< threads, and memory for each of them
  BatchSource(const Reader& reader, const config::DataOptions& options, Order order, Split split, int threads);
  void find_samples(std::int64_t step, const std::vector<Part>& parts) const;
  std::int64_t sample(std::int64_t row) const; ///< after find_samples
  std::int64_t epoch(std::int64_t step, std::int64_t row) const;
  Mix mix(std::int64_t step, std::int64_t row) const; ///< that of the row's sample, of none in validation
  double weight(std::int64_t step, std::int64_t row) const;
  void read_labels(std::int64_t step, const Part& part, std::byte* out) const;
  void read_inputs(std::int64_t step, const Part& part, std::byte* out) const;
  void read_tokens(const Part& part, std::int64_t shift, std::int32_t* out) const; ///< after find_samples
  void read_targets(const Part& part, std::byte* out) const;                       ///< after find_samples
  template<class T>
  void read_rows(std::span<const std::int64_t> ids, const Box& part, T* out) const;
  template<class T>
  void read_mixed(std::int64_t step, std::int64_t row, const Box& part, int worker, T* out) const;
  template<class T>
  void read_changed(std::int64_t id, std::int64_t epoch, const Box& part, int worker, T* out) const;
  template<class T>
  void read_augmented(std::int64_t id, std::int64_t epoch, const Box& part, int worker, T* out) const;

  const Reader* reader_;
  const config::DataOptions* options_;
  Order order_;
  Split split_;
  std::unique_ptr<Own> own_;
  bool augments_ = false, mixes_ = false; ///< samples to train with
};

/// Reads steps first, first + 1, … up to `depth` ahead (0: on the calling thread). Errors of the thread surface in
/// next().
class Loader {
public:
  Loader(BatchSource source, std::vector<Part> parts, std::int64_t first, std::int64_t depth);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; valid until the following call.
  const Batch& next();

private:
  void work();

  BatchSource source_;
  std::vector<Part> parts_;
  std::int64_t depth_;
  std::int64_t next_read_;
  Batch current_;
  std::deque<Batch> ready_;
  std::vector<Batch> spare_; ///< used batches, so that steady state allocates nothing
  std::exception_ptr error_;
  bool stop_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

} // namespace soybean::data
