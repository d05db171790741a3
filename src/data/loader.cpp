#include "data/loader.hpp"

#include "base/error.hpp"
#include "data/part.hpp"

#include <algorithm>
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

bool is_identity(const config::NormaliseOptions& options) {
  return options.scale == 1.0 && options.mean.empty() && options.std.empty();
}

} // namespace

BatchSource BatchSource::training(const Reader& reader, const config::NormaliseOptions& normalise, Order order) {
  return {reader, normalise, order, Split::train};
}

BatchSource BatchSource::validation(const Reader& reader, const config::NormaliseOptions& normalise,
                                    std::int64_t batch) {
  return {reader, normalise, {reader.info().validation_samples, batch, 0, false}, Split::validation};
}

std::int64_t BatchSource::steps() const {
  return (order_.samples + order_.batch - 1) / order_.batch;
}

std::int64_t BatchSource::sample(std::int64_t step, std::int64_t row) const {
  if (split_ == Split::train) return sample_at(order_, step, row);
  return std::min(step * order_.batch + row, order_.samples - 1);
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
  std::vector<std::int64_t> ids;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    std::vector<std::byte>& bytes = batch.parts[p];
    bytes.resize(static_cast<std::size_t>(volume(part.box) * size_of(part.dtype)));
    const std::int64_t first = part.box.offsets[0], rows = part.box.extents[0];
    if (part.content == Content::weights) {
      for (std::int64_t r = 0; r < rows; ++r) store(part.dtype, bytes.data(), r, weight(step, first + r));
      continue;
    }
    ids.clear();
    for (std::int64_t r = 0; r < rows; ++r) ids.push_back(sample(step, first + r));
    if (part.content == Content::labels) {
      reader_->read_labels(split_, ids, reinterpret_cast<std::int32_t*>(bytes.data()));
      continue;
    }
    const Box inner{{part.box.offsets.begin() + 1, part.box.offsets.end()},
                    {part.box.extents.begin() + 1, part.box.extents.end()}};
    reader_->read_inputs(split_, ids, inner, part.dtype, bytes.data());
    if (is_identity(*normalise_)) continue;
    if (part.dtype == DType::f64)
      normalise(*normalise_, inner, rows, reinterpret_cast<double*>(bytes.data()));
    else
      normalise(*normalise_, inner, rows, reinterpret_cast<float*>(bytes.data()));
  }
}

Loader::Loader(BatchSource source, std::vector<Part> parts, std::int64_t first, std::int64_t depth)
    : source_(source), parts_(std::move(parts)), depth_(depth), next_read_(first) {
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
