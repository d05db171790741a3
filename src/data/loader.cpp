#include "data/loader.hpp"

#include "base/error.hpp"
#include "data/augment.hpp"
#include "data/part.hpp"
#include "data/workers.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace soybean::data {

namespace {

/// x ← (x · scale − mean[c]) / std[c] for the part's rows of samples [C, …].
template<class T>
void normalise(const config::NormaliseOptions& options, const Box& part, std::int64_t rows, T* values) {
  const std::int64_t channels = part.extents.empty() ? 1 : part.extents[0];
  const std::int64_t first = part.offsets.empty() ? 0 : part.offsets[0];
  const std::int64_t inner = channels == 0 ? 0 : volume(part) / channels;
  auto per_channel = [](const std::vector<double>& list, std::int64_t c, double otherwise) {
    return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[static_cast<std::size_t>(c)];
  };
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t c = 0; c < channels; ++c) {
      const double mean = per_channel(options.mean, first + c, 0.0);
      const double factor = 1.0 / per_channel(options.std, first + c, 1.0);
      for (std::int64_t i = 0; i < inner; ++i, ++values)
        *values = static_cast<T>((static_cast<double>(*values) * options.scale - mean) * factor);
    }
}

/// Sets what of a hole lies in the part to 0.
template<class T>
void clear(const Hole& hole, const Box& part, T* values) {
  const std::int64_t top = part.offsets[1], left = part.offsets[2], height = part.extents[1], width = part.extents[2];
  const std::int64_t begin = std::clamp<std::int64_t>(hole.left - left, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(hole.right - left, 0, width);
  for (std::int64_t c = 0; c < part.extents[0]; ++c)
    for (std::int64_t y = std::max<std::int64_t>(0, hole.top - top); y < std::min(height, hole.bottom - top); ++y)
      std::fill(values + (c * height + y) * width + begin, values + (c * height + y) * width + end, T{0});
}

template<class T>
constexpr DType dtype_of = std::is_same_v<T, double> ? DType::f64 : DType::f32;

/// What of each sample a part of the batch has.
Box of_a_row(const Box& box) {
  return {{box.offsets.begin() + 1, box.offsets.end()}, {box.extents.begin() + 1, box.extents.end()}};
}

bool is_identity(const config::NormaliseOptions& options) {
  return options.scale == 1.0 && options.mean.empty() && options.std.empty();
}

} // namespace

namespace {

/// One worker's memory.
struct Scratch {
  std::vector<std::byte> raw;
  Picture<float> single;
  Picture<double> twice;
  std::vector<Hole> holes;
  std::vector<float> partner_single; ///< what is mixed into the sample
  std::vector<double> partner_twice;

  Picture<float>& picture(float) { return single; }
  Picture<double>& picture(double) { return twice; }
  std::vector<float>& partner(float) { return partner_single; }
  std::vector<double>& partner(double) { return partner_twice; }
};

} // namespace

struct BatchSource::Own {
  explicit Own(int threads) : workers(threads), scratch(static_cast<std::size_t>(threads)) {}
  Workers workers;
  std::vector<Scratch> scratch;
  std::vector<std::int64_t> samples; ///< of the rows from `first_row` on, of the batch being read
  std::int64_t first_row = 0;
};

BatchSource::BatchSource(const Reader& reader, const config::DataOptions& options, Order order, Split split,
                         int threads)
    : reader_(&reader), options_(&options), order_(order), split_(split), own_(std::make_unique<Own>(threads)) {
  if (split != Split::train) return;
  for (const config::AugmentStep& step : options.augment) (config::mixes(step) ? mixes_ : augments_) = true;
}

BatchSource::BatchSource(BatchSource&&) noexcept = default;
BatchSource::~BatchSource() = default;

BatchSource BatchSource::training(const Reader& reader, const config::DataOptions& options, Order order, int threads) {
  return {reader, options, order, Split::train, threads};
}

BatchSource BatchSource::validation(const Reader& reader, const config::DataOptions& options, std::int64_t batch,
                                    int threads) {
  return {reader, options, {reader.info().validation_samples, batch, 0, false}, Split::validation, threads};
}

std::int64_t BatchSource::steps() const {
  return (order_.samples + order_.batch - 1) / order_.batch;
}

std::int64_t BatchSource::sample(std::int64_t row) const {
  return own_->samples[static_cast<std::size_t>(row - own_->first_row)];
}

/// A place in the shuffled order takes a while to find: each row's once, whatever is read of it.
void BatchSource::find_samples(std::int64_t step, const std::vector<Part>& parts) const {
  std::int64_t first = order_.batch, end = 0;
  for (const Part& part : parts) {
    first = std::min(first, part.box.offsets[0]);
    end = std::max(end, part.box.offsets[0] + part.box.extents[0]);
  }
  own_->first_row = first;
  own_->samples.clear();
  for (std::int64_t row = first; row < end; ++row)
    own_->samples.push_back(split_ == Split::train ? sample_at(order_, step, row)
                                                   : std::min(step * order_.batch + row, order_.samples - 1));
}

std::int64_t BatchSource::epoch(std::int64_t step, std::int64_t row) const {
  return (step * order_.batch + row) / order_.samples;
}

Mix BatchSource::mix(std::int64_t step, std::int64_t row) const {
  const std::int64_t id = sample(row);
  if (!mixes_) return {.partner = id};
  const Info& info = reader_->info();
  AugmentTarget target{.white = info.white};
  if (info.sample.size() == 3) target = {info.sample[1], info.sample[2], info.white};
  return mix_for(options_->augment, {order_.seed, id, epoch(step, row)}, order_.samples, target);
}

double BatchSource::weight(std::int64_t step, std::int64_t row) const {
  if (split_ == Split::train) return 1.0 / static_cast<double>(order_.batch);
  return step * order_.batch + row < order_.samples ? 1.0 / static_cast<double>(order_.samples) : 0.0;
}

void BatchSource::read(std::int64_t step, const std::vector<Part>& parts, Batch& batch) const {
  batch.step = step;
  batch.rows = order_.batch;
  if (split_ == Split::validation)
    batch.rows = std::clamp<std::int64_t>(order_.samples - step * order_.batch, 0, order_.batch);
  batch.parts.resize(parts.size());
  find_samples(step, parts);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    std::vector<std::byte>& bytes = batch.parts[p];
    bytes.resize(static_cast<std::size_t>(volume(part.box) * size_of(part.dtype)));
    const std::int64_t first = part.box.offsets[0], rows = part.box.extents[0];
    switch (part.content) {
    case Content::inputs:
      read_inputs(step, part, bytes.data());
      break;
    case Content::labels:
    case Content::partner_labels:
      read_labels(step, part, bytes.data());
      break;
    case Content::shares:
      for (std::int64_t r = 0; r < rows; ++r) store(part.dtype, bytes.data(), r, mix(step, first + r).share);
      break;
    case Content::targets:
      read_targets(part, bytes.data());
      break;
    case Content::weights:
      for (std::int64_t r = 0; r < rows; ++r) store(part.dtype, bytes.data(), r, weight(step, first + r));
      break;
    }
  }
}

void BatchSource::read_labels(std::int64_t step, const Part& part, std::byte* out) const {
  const bool partners = part.content == Content::partner_labels;
  auto* labels = reinterpret_cast<std::int32_t*>(out);
  if (part.box.extents.size() == 2) return read_tokens(part, 1, labels);
  std::vector<std::int64_t> ids;
  for (std::int64_t row = part.box.offsets[0]; row < part.box.offsets[0] + part.box.extents[0]; ++row)
    ids.push_back(partners ? mix(step, row).partner : sample(row));
  reader_->read_labels(split_, ids, labels);
}

void BatchSource::read_tokens(const Part& part, std::int64_t shift, std::int32_t* out) const {
  const Box inner = of_a_row(part.box);
  const std::int64_t first = part.box.offsets[0];
  if (empty(part.box)) return;
  own_->workers.run(part.box.extents[0], [&](std::int64_t row, int) {
    const std::int64_t id = sample(first + row);
    reader_->read_tokens(split_, std::span(&id, 1), inner, shift, out + row * volume(inner));
  });
}

void BatchSource::read_targets(const Part& part, std::byte* out) const {
  const Box inner = of_a_row(part.box);
  const std::int64_t first = part.box.offsets[0], row_bytes = volume(inner) * size_of(part.dtype);
  if (row_bytes == 0) return;
  own_->workers.run(part.box.extents[0], [&](std::int64_t row, int) {
    const std::int64_t id = sample(first + row);
    reader_->read_targets(split_, std::span(&id, 1), inner, part.dtype, out + row * row_bytes);
  });
}

void BatchSource::read_inputs(std::int64_t step, const Part& part, std::byte* out) const {
  if (part.dtype == DType::i32) return read_tokens(part, 0, reinterpret_cast<std::int32_t*>(out));
  const std::int64_t first = part.box.offsets[0], rows = part.box.extents[0];
  const Box inner = of_a_row(part.box);
  const std::int64_t row_size = volume(inner);
  if (rows == 0 || row_size == 0) return;
  const auto read = [&](auto* values) {
    own_->workers.run(rows, [&](std::int64_t row, int worker) {
      read_mixed(step, first + row, inner, worker, values + row * row_size);
    });
  };
  part.dtype == DType::f64 ? read(reinterpret_cast<double*>(out)) : read(reinterpret_cast<float*>(out));
}

template<class T>
void BatchSource::read_mixed(std::int64_t step, std::int64_t row, const Box& part, int worker, T* out) const {
  const std::int64_t now = split_ == Split::train ? epoch(step, row) : 0;
  read_changed(sample(row), now, part, worker, out);
  const Mix mixed = mix(step, row);
  if (mixed.share == 1) return;
  std::vector<T>& partner = own_->scratch[static_cast<std::size_t>(worker)].partner(T{});
  partner.resize(static_cast<std::size_t>(volume(part)));
  read_changed(mixed.partner, now, part, worker, partner.data());
  blend(mixed, part, partner.data(), out);
}

template<class T>
void BatchSource::read_changed(std::int64_t id, std::int64_t epoch, const Box& part, int worker, T* out) const {
  augments_ ? read_augmented(id, epoch, part, worker, out) : read_rows(std::span(&id, 1), part, out);
}

template<class T>
void BatchSource::read_rows(std::span<const std::int64_t> ids, const Box& part, T* out) const {
  reader_->read_inputs(split_, ids, part, dtype_of<T>, out);
  if (!is_identity(options_->normalise))
    normalise(options_->normalise, part, static_cast<std::int64_t>(ids.size()), out);
}

/// The whole sample is changed, then the part taken from it: ranks with other parts see the same change.
template<class T>
void BatchSource::read_augmented(std::int64_t id, std::int64_t epoch, const Box& part, int worker, T* out) const {
  const Info& info = reader_->info();
  Scratch& scratch = own_->scratch[static_cast<std::size_t>(worker)];
  Picture<T>& picture = scratch.picture(T{});
  const Shape shape = reader_->read_whole(split_, id, fit_for(options_->augment), dtype_of<T>, scratch.raw);
  ensure(shape.size() == 3, "augmentation of what is no image");
  picture.channels = shape[0];
  picture.height = shape[1];
  picture.width = shape[2];
  picture.values.resize(static_cast<std::size_t>(volume(shape)));
  std::memcpy(picture.values.data(), scratch.raw.data(), picture.values.size() * sizeof(T));
  augment(options_->augment, {order_.seed, id, epoch}, {info.sample[1], info.sample[2], info.white}, picture,
          scratch.holes);
  T* to = out;
  for_each_run(info.sample, part, [&](std::int64_t first, std::int64_t count) {
    to = std::copy_n(picture.values.data() + first, count, to);
  });
  if (!is_identity(options_->normalise)) normalise(options_->normalise, part, 1, out);
  for (const Hole& hole : scratch.holes) clear(hole, part, out);
}

Loader::Loader(BatchSource source, std::vector<Part> parts, std::int64_t first, std::int64_t depth)
    : source_(std::move(source)), parts_(std::move(parts)), depth_(depth), next_read_(first) {
  if (depth_ > 0) thread_ = std::thread([this] { work(); });
}

Loader::~Loader() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

const Batch& Loader::next() {
  if (depth_ == 0) {
    source_.read(next_read_++, parts_, current_);
    return current_;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || error_; });
  if (ready_.empty()) std::rethrow_exception(error_);
  spare_.push_back(std::exchange(current_, std::move(ready_.front())));
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return current_;
}

void Loader::work() {
  try {
    while (true) {
      Batch batch;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || static_cast<std::int64_t>(ready_.size()) < depth_; });
        if (stop_) return;
        if (!spare_.empty()) {
          batch = std::move(spare_.back());
          spare_.pop_back();
        }
      }
      source_.read(next_read_++, parts_, batch);
      {
        std::lock_guard lock(mutex_);
        ready_.push_back(std::move(batch));
      }
      changed_.notify_all();
    }
  } catch (...) {
    {
      std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    changed_.notify_all();
  }
}

} // namespace soybean::data
