// HDF5 files: `/train/inputs` [N, sample…] and `/train/labels` [N], and the same under `/validation` if it is there.
#include "io/hdf5.hpp"
#include "base/error.hpp"
#include "data/part.hpp"
#include "data/reader.hpp"
#include "io/sources.hpp"

#include <array>
#include <cstring>
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

class Hdf5Reader : public Reader {
public:
  Hdf5Reader(const std::string& path, const Expected& expected, std::int64_t cache_bytes) : file_(io::open_read(path)) {
    parts_[0] = open_split(file_, "train", expected, cache_bytes);
    if (io::exists(file_, "validation")) parts_[1] = open_split(file_, "validation", expected, cache_bytes);
    info_ = {expected.sample, parts_[0].samples, parts_[1].samples};
  }

  const Info& info() const override { return info_; }

  void read_inputs(Split split, std::span<const std::int64_t> ids, const Box& box, DType type,
                   void* out) const override {
    const SplitData& part = parts_[static_cast<std::size_t>(split)];
    const std::int64_t size = volume(info_.sample), count = volume(box);
    std::int64_t at = 0;
    for (std::int64_t id : ids) {
      if (part.cached.empty()) {
        Box one = box;
        one.offsets.insert(one.offsets.begin(), id);
        one.extents.insert(one.extents.begin(), 1);
        io::read_box(file_, part.inputs_name, one, type, static_cast<std::byte*>(out) + at * size_of(type));
        at += count;
        continue;
      }
      const float* sample = part.cached.data() + id * size;
      for_each_run(info_.sample, box, [&](std::int64_t first, std::int64_t run) {
        if (type == DType::f32)
          std::memcpy(static_cast<float*>(out) + at, sample + first, run * sizeof(float));
        else
          for (std::int64_t i = 0; i < run; ++i) store(type, out, at + i, sample[first + i]);
        at += run;
      });
    }
  }

  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* out) const override {
    const SplitData& part = parts_[static_cast<std::size_t>(split)];
    for (std::size_t i = 0; i < ids.size(); ++i) out[i] = part.labels[ids[i]];
  }

private:
  io::File file_;
  std::array<SplitData, 2> parts_; ///< train, validation
  Info info_;
};

} // namespace

std::unique_ptr<Reader> make_hdf5_reader(const std::string& path, const Expected& expected, std::int64_t cache_bytes) {
  return std::make_unique<Hdf5Reader>(path, expected, cache_bytes);
}

} // namespace soybean::data
