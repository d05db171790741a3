#include "data/array_reader.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <utility>

namespace soybean::data {

namespace {

std::int64_t samples_of(const ArraySplit& split) {
  std::int64_t samples = 0;
  for (const Array& piece : split.pieces) samples += piece.count;
  return samples;
}

void check(const ArraySplit& split, const Expected& expected) {
  if (split.pieces.empty()) return;
  const std::int64_t samples = samples_of(split);
  const std::string& name = split.pieces.front().bytes.name();
  if (samples == 0) fail("{}: got 0 samples expected at least one", name);
  if (split.targets && split.targets->count != samples)
    fail("{}: got {} targets expected {}, one for each sample of {}", split.targets->bytes.name(), split.targets->count,
         samples, name);
  if (!expected.labels) return;
  if (const auto labels = static_cast<std::int64_t>(split.labels.size()); labels != samples)
    fail("{}: got {} labels expected {}, one for each sample of {}", split.labels_name, labels, samples, name);
  check_labels(split.labels, expected.classes, split.labels_name);
}

class ArrayReader : public Reader {
public:
  ArrayReader(ArraySplit train, ArraySplit validation, const Expected& expected)
      : splits_{std::move(train), std::move(validation)} {
    info_ = {expected.sample, samples_of(splits_[0]), samples_of(splits_[1])};
    info_.white = white_of(splits_[0].pieces.front().element);
  }

  const Info& info() const override { return info_; }

  void read_inputs(Split split, std::span<const std::int64_t> ids, const Box& part, DType type,
                   void* out) const override {
    auto* to = static_cast<std::byte*>(out);
    for (std::int64_t id : ids) {
      auto piece = splits_[static_cast<std::size_t>(split)].pieces.begin();
      for (; id >= piece->count; ++piece) id -= piece->count;
      read_part(*piece, id, part, type, to);
      to += volume(part) * size_of(type);
    }
  }

  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* out) const override {
    for (std::size_t i = 0; i < ids.size(); ++i)
      out[i] = splits_[static_cast<std::size_t>(split)].labels[static_cast<std::size_t>(ids[i])];
  }

  void read_targets(Split split, std::span<const std::int64_t> ids, const Box& part, DType type,
                    void* out) const override {
    const Array& targets = targets_of(split);
    auto* to = static_cast<std::byte*>(out);
    for (std::int64_t id : ids) {
      read_part(targets, id, part, type, to);
      to += volume(part) * size_of(type);
    }
  }

  std::string where(Split split, std::int64_t id, What what) const override {
    const ArraySplit& from = splits_[static_cast<std::size_t>(split)];
    if (what == What::targets) return fmt::format("{}[{}]", targets_of(split).bytes.name(), id);
    auto piece = from.pieces.begin();
    for (; id >= piece->count; ++piece) id -= piece->count;
    return fmt::format("{}[{}]", piece->bytes.name(), id);
  }

private:
  const Array& targets_of(Split split) const {
    const std::optional<Array>& targets = splits_[static_cast<std::size_t>(split)].targets;
    if (!targets) throw Bug("data without targets");
    return *targets;
  }

  std::array<ArraySplit, 2> splits_;
  Info info_;
};

} // namespace

void check_labels(const std::vector<std::int32_t>& labels, std::int64_t classes, const std::string& where) {
  const auto bad = std::find_if(labels.begin(), labels.end(), [&](std::int32_t l) { return l < 0 || l >= classes; });
  if (bad != labels.end())
    fail("{}[{}], got {} expected a class from 0 to {}. the model's last layer has {} outputs", where,
         bad - labels.begin(), *bad, classes - 1, classes);
}

std::unique_ptr<Reader> make_array_reader(ArraySplit train, ArraySplit validation, const Expected& expected) {
  check(train, expected);
  check(validation, expected);
  return std::make_unique<ArrayReader>(std::move(train), std::move(validation), expected);
}

} // namespace soybean::data
