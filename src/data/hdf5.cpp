// HDF5 files: `/train/inputs` [N, sample…], `/train/labels` [N] and `/train/targets` [N, …] where the model reads them,
// and the same under `/validation` if it is there. Of several files the samples of one come after those of the other.
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

/// A dataset [N, …], kept in memory if it is small enough.
struct Values {
  std::string name;
  Shape sample, stored;      ///< of one row: as it is read, and as it is in the file, with or without dims of extent 1
  std::vector<float> single; ///< what is exact in fp32
  std::vector<double> twice; ///< what is exact in fp64; both empty: read row by row
};

/// One of the two splits of a file.
struct SplitData {
  std::int64_t samples = 0;
  Values inputs;
  std::vector<std::int32_t> labels; ///< where the model reads them
  Values targets;                   ///< the same
};

/// Reads a dataset if at most `cache_bytes` are enough to keep it; takes from them what it needs.
void keep(const io::File& file, const io::DatasetInfo& info, std::int64_t& cache_bytes, Values& values) {
  const bool real = info.element == io::ElementClass::real;
  const DType type = info.element_bytes < 8 ? DType::f32 : DType::f64;
  const std::int64_t bytes = volume(info.shape) * size_of(type);
  if (bytes > cache_bytes || info.element_bytes > 8 || (type == DType::f64 && !real)) return;
  cache_bytes -= bytes;
  const auto read = [&](auto& list) {
    list.resize(static_cast<std::size_t>(volume(info.shape)));
    io::read_box(file, values.name, whole(info.shape), type, list.data());
  };
  type == DType::f32 ? read(values.single) : read(values.twice);
}

/// The part `box` of row `id` from memory.
template<class T>
void copy_kept(const std::vector<T>& kept, const Shape& sample, std::int64_t id, const Box& box, DType type,
               void* out) {
  const T* row = kept.data() + id * volume(sample);
  const bool alike = size_of(type) == static_cast<std::int64_t>(sizeof(T));
  std::int64_t at = 0;
  for_each_run(sample, box, [&](std::int64_t first, std::int64_t run) {
    if (alike)
      std::memcpy(static_cast<T*>(out) + at, row + first, static_cast<std::size_t>(run) * sizeof(T));
    else
      for (std::int64_t i = 0; i < run; ++i) store(type, out, at + i, static_cast<double>(row[first + i]));
    at += run;
  });
}

/// The same from the file.
void read_stored(const Values& values, const io::File& file, std::int64_t id, const Box& box, DType type, void* out) {
  const bool alike = values.stored == values.sample; // else the whole row is read
  Box one = alike ? box : whole(values.stored);
  one.offsets.insert(one.offsets.begin(), id);
  one.extents.insert(one.extents.begin(), 1);
  if (alike) return io::read_box(file, values.name, one, type, out);
  std::vector<double> row(static_cast<std::size_t>(volume(values.sample)));
  io::read_box(file, values.name, one, DType::f64, row.data());
  copy_kept(row, values.sample, 0, box, type, out);
}

void read_values(const Values& values, const io::File& file, std::int64_t id, const Box& box, DType type, void* out) {
  if (!values.single.empty())
    copy_kept(values.single, values.sample, id, box, type, out);
  else if (!values.twice.empty())
    copy_kept(values.twice, values.sample, id, box, type, out);
  else
    read_stored(values, file, id, box, type, out);
}

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

Shape row_shape(const Shape& shape) {
  return shape.empty() ? Shape() : Shape(shape.begin() + 1, shape.end());
}

Values open_targets(const io::File& file, const std::string& name, std::int64_t samples, const Shape& expected,
                    std::int64_t& cache_bytes) {
  const io::DatasetInfo info = io::dataset_info(file, name);
  io::check_sources(file, name);
  if (info.element != io::ElementClass::real)
    fail("{}: {}, got {} of shape {} expected targets, reals of shape [samples, …]. store float32 or float64",
         file.path, name, info.element == io::ElementClass::integer ? "integers" : "elements that are no numbers",
         to_string(info.shape));
  Shape stored = row_shape(info.shape), plain = stored, wanted = expected;
  std::erase(plain, 1);
  std::erase(wanted, 1);
  if (info.shape.empty() || plain != wanted)
    fail("{}: {}, got targets of shape {} expected {} as what the loss is of", file.path, name, to_string(stored),
         to_string(expected));
  if (info.shape[0] != samples)
    fail("{}: {}, got {} targets expected {}, one for each sample", file.path, name, info.shape[0], samples);
  Values values{name, expected, std::move(stored), {}, {}};
  keep(file, info, cache_bytes, values);
  return values;
}

SplitData open_split(const io::File& file, const std::string& group, const Expected& expected,
                     std::int64_t& cache_bytes) {
  SplitData part;
  const std::string name = group + "/inputs";
  const io::DatasetInfo info = io::dataset_info(file, name);
  io::check_sources(file, name);
  if (info.element == io::ElementClass::other)
    fail("{}: {}, got elements that are no numbers expected integers or reals", file.path, name);
  const Shape sample = row_shape(info.shape);
  if (info.shape.empty() || sample != expected.sample)
    fail("{}: {}, got samples of shape {} expected {} as in model.input", file.path, name, to_string(sample),
         to_string(expected.sample));
  part.samples = info.shape[0];
  if (part.samples == 0) fail("{}: {}, got 0 samples expected at least one", file.path, name);
  if (expected.labels) part.labels = read_labels_checked(file, group + "/labels", part.samples, expected.classes);
  if (expected.targets)
    part.targets = open_targets(file, group + "/targets", part.samples, *expected.targets, cache_bytes);
  part.inputs = {name, sample, sample, {}, {}};
  keep(file, info, cache_bytes, part.inputs);
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
    read(split, ids, &SplitData::inputs, box, type, out);
  }

  void read_targets(Split split, std::span<const std::int64_t> ids, const Box& box, DType type,
                    void* out) const override {
    read(split, ids, &SplitData::targets, box, type, out);
  }

  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* out) const override {
    for (std::int64_t id : ids) {
      const SplitData* part = find(split, id).first;
      *out++ = part->labels[static_cast<std::size_t>(id)];
    }
  }

  std::string where(Split split, std::int64_t id, What what) const override {
    const auto [part, file] = find(split, id);
    return fmt::format("{}: {}[{}]", file->path, (what == What::inputs ? part->inputs : part->targets).name, id);
  }

private:
  void add(std::size_t split, const std::string& group, const Expected& expected, std::int64_t& cache_bytes) {
    Shards& shards = splits_[split];
    shards.parts.push_back(open_split(files_.back(), group, expected, cache_bytes));
    shards.files.push_back(files_.size() - 1);
    shards.samples += shards.parts.back().samples;
  }

  /// The part and the file that sample `id` is in; `id` becomes its number there.
  std::pair<const SplitData*, const io::File*> find(Split split, std::int64_t& id) const {
    const Shards& shards = splits_[static_cast<std::size_t>(split)];
    std::size_t i = 0;
    for (; id >= shards.parts[i].samples; ++i) id -= shards.parts[i].samples;
    return {&shards.parts[i], &files_[shards.files[i]]};
  }

  void read(Split split, std::span<const std::int64_t> ids, Values SplitData::*what, const Box& box, DType type,
            void* out) const {
    auto* to = static_cast<std::byte*>(out);
    for (std::int64_t id : ids) {
      const auto [part, file] = find(split, id);
      read_values(part->*what, *file, id, box, type, to);
      to += volume(box) * size_of(type);
    }
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
