// HDF5 files: `/train/inputs` [N, sample…] and `/train/labels` [N], and the same under `/validation` if it is there. Of
// several files the samples of one come after those of the other.
#include "io/hdf5.hpp"
#include "base/error.hpp"
#include "data/part.hpp"
#include "data/reader.hpp"
#include "io/sources.hpp"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace soybean::data {

namespace {

/// One of the two splits: its labels, and its inputs if they are small enough to keep.
struct SplitData {
  std::string inputs_name;
  std::int64_t samples = 0;
  std::vector<std::int32_t> labels;
  std::vector<float> cached; ///< empty: read sample by sample
};

std::vector<std::int32_t> read_labels_checked(const io::File& file, const std::string& name, std::int64_t samples,
                                              std::int64_t classes) {
  const io::DatasetInfo info = io::dataset_info(file, name);
  io::check_sources(file, name);
  if (info.element != io::ElementClass::integer || info.shape.size() != 1)
    fail("{}: {}, got {} of shape {} expected a list of integers", file.path, name,
         info.element == io::ElementClass::integer ? "integers" : "elements that are no integers",
         to_string(info.shape));
  if (info.shape[0] != samples)
    fail("{}: {}, got {} labels expected {}, one for each sample", file.path, name, info.shape[0], samples);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
  io::read_box(file, name, whole(info.shape), DType::i32, labels.data());
  for (std::int64_t i = 0; i < samples; ++i)
    if (labels[i] < 0 || labels[i] >= classes)
      fail("{}: {}[{}], got {} expected a class from 0 to {}. the model's last layer has {} outputs", file.path, name,
           i, labels[i], classes - 1, classes);
  return labels;
}

SplitData open_split(const io::File& file, const std::string& group, const Expected& expected,
                     std::int64_t cache_bytes) {
  SplitData part;
  part.inputs_name = group + "/inputs";
  const io::DatasetInfo info = io::dataset_info(file, part.inputs_name);
  io::check_sources(file, part.inputs_name);
  if (info.element == io::ElementClass::other)
    fail("{}: {}, got elements that are no numbers expected integers or reals", file.path, part.inputs_name);
  const Shape sample = info.shape.empty() ? Shape() : Shape(info.shape.begin() + 1, info.shape.end());
  if (info.shape.empty() || sample != expected.sample)
    fail("{}: {}, got samples of shape {} expected {} as in model.input", file.path, part.inputs_name,
         to_string(sample), to_string(expected.sample));
  part.samples = info.shape[0];
  if (part.samples == 0) fail("{}: {}, got 0 samples expected at least one", file.path, part.inputs_name);
  part.labels = read_labels_checked(file, group + "/labels", part.samples, expected.classes);
  const bool exact_in_float = info.element_bytes < 8;
  if (exact_in_float && volume(info.shape) * size_of(DType::f32) <= cache_bytes) {
    part.cached.resize(static_cast<std::size_t>(volume(info.shape)));
    io::read_box(file, part.inputs_name, whole(info.shape), DType::f32, part.cached.data());
  }
  return part;
}

/// A split over all files: the samples of one after those of the other.
struct Shards {
  std::vector<std::size_t> files; ///< of each part
  std::vector<SplitData> parts;
  std::int64_t samples = 0;
};

class Hdf5Reader : public Reader {
public:
  Hdf5Reader(const std::vector<std::string>& paths, const Expected& expected, std::int64_t cache_bytes) {
    for (const std::string& path : paths) {
      files_.push_back(io::open_read(path));
      const bool trains = io::exists(files_.back(), "train"), validates = io::exists(files_.back(), "validation");
      if (trains || !validates) add(0, "train", expected, cache_bytes); // without either: says that it is missing
      if (validates) add(1, "validation", expected, cache_bytes);
    }
    if (splits_[0].samples == 0)
      fail("{}: got no group /train in {} expected one to train with", paths.front(),
           paths.size() == 1 ? "it" : "any file");
    info_ = {expected.sample, splits_[0].samples, splits_[1].samples};
    const io::DatasetInfo about = io::dataset_info(files_[splits_[0].files.front()], "train/inputs");
    if (about.element == io::ElementClass::integer && about.element_bytes == 1) info_.white = 255;
  }

  const Info& info() const override { return info_; }

  void read_inputs(Split split, std::span<const std::int64_t> ids, const Box& box, DType type,
                   void* out) const override {
    auto* to = static_cast<std::byte*>(out);
    for (std::int64_t id : ids) {
      const auto [part, file] = find(split, id);
      part->cached.empty() ? read_stored(*part, *file, id, box, type, to) : read_cached(*part, id, box, type, to);
      to += volume(box) * size_of(type);
    }
  }

  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* out) const override {
    for (std::int64_t id : ids) {
      const SplitData* part = find(split, id).first;
      *out++ = part->labels[static_cast<std::size_t>(id)];
    }
  }

private:
  void add(std::size_t split, const std::string& group, const Expected& expected, std::int64_t& cache_bytes) {
    Shards& shards = splits_[split];
    shards.parts.push_back(open_split(files_.back(), group, expected, cache_bytes));
    shards.files.push_back(files_.size() - 1);
    shards.samples += shards.parts.back().samples;
    cache_bytes -= static_cast<std::int64_t>(shards.parts.back().cached.size() * sizeof(float));
  }

  /// The part and the file that sample `id` is in; `id` becomes its number there.
  std::pair<const SplitData*, const io::File*> find(Split split, std::int64_t& id) const {
    const Shards& shards = splits_[static_cast<std::size_t>(split)];
    std::size_t i = 0;
    for (; id >= shards.parts[i].samples; ++i) id -= shards.parts[i].samples;
    return {&shards.parts[i], &files_[shards.files[i]]};
  }

  static void read_stored(const SplitData& part, const io::File& file, std::int64_t id, const Box& box, DType type,
                          void* out) {
    Box one = box;
    one.offsets.insert(one.offsets.begin(), id);
    one.extents.insert(one.extents.begin(), 1);
    io::read_box(file, part.inputs_name, one, type, out);
  }

  void read_cached(const SplitData& part, std::int64_t id, const Box& box, DType type, void* out) const {
    const float* sample = part.cached.data() + id * volume(info_.sample);
    std::int64_t at = 0;
    for_each_run(info_.sample, box, [&](std::int64_t first, std::int64_t run) {
      if (type == DType::f32)
        std::memcpy(static_cast<float*>(out) + at, sample + first, static_cast<std::size_t>(run) * sizeof(float));
      else
        for (std::int64_t i = 0; i < run; ++i) store(type, out, at + i, sample[first + i]);
      at += run;
    });
  }

  std::vector<io::File> files_;
  std::array<Shards, 2> splits_; ///< train, validation
  Info info_;
};

} // namespace

std::unique_ptr<Reader> make_hdf5_reader(const std::vector<std::string>& paths, const Expected& expected,
                                         std::int64_t cache_bytes) {
  return std::make_unique<Hdf5Reader>(paths, expected, cache_bytes);
}

} // namespace soybean::data
