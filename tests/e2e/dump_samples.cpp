// Writes what a data source gives, for tests that hold it to other programs' readers.
//   dump_samples CONFIG.toml CLASSES train|validation OUT [TARGETS]
// CONFIG has [model] input, [data] and [train]. Every sample as the reader gives it, in order; every half of a sample
// is held to the whole one. TARGETS, as 3x4: samples have targets of that shape and, with CLASSES 0, no labels.
//   dump_samples CONFIG.toml CLASSES steps OUT N
// The first N batches to train with. OUT: count, number of dims, dims (i64), values (f64), labels (i32); then of
// targets the same but labels; of batches partners' labels (i32) and shares (f64).
#include "base/error.hpp"
#include "config/options.hpp"
#include "data/loader.hpp"
#include "data/reader.hpp"

#include <cstdio>
#include <fstream>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace soybean;

using Ids = std::vector<std::int64_t>;
/// read_inputs or read_targets of a reader.
using Read = void (data::Reader::*)(data::Split, std::span<const std::int64_t>, const Box&, DType, void*) const;

void check_parts(const data::Reader& reader, Read read, data::Split split, std::int64_t id, const Shape& sample,
                 const double* expected) {
  const Ids ids{id};
  for (std::size_t d = 0; d < sample.size(); ++d)
    for (const auto& [first, count] :
         {std::pair(std::int64_t{0}, sample[d] / 2), std::pair(sample[d] / 2, sample[d] - sample[d] / 2)}) {
      Box part = whole(sample);
      part.offsets[d] = first;
      part.extents[d] = count;
      std::vector<float> got(static_cast<std::size_t>(volume(part)));
      (reader.*read)(split, ids, part, DType::f32, got.data());
      std::size_t at = 0;
      std::int64_t inner = 1, outer = 1;
      for (std::size_t e = 0; e < d; ++e) outer *= sample[e];
      for (std::size_t e = d + 1; e < sample.size(); ++e) inner *= sample[e];
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = first; i < first + part.extents[d]; ++i)
          for (std::int64_t k = 0; k < inner; ++k, ++at)
            ensure(got[at] == static_cast<float>(expected[(o * sample[d] + i) * inner + k]), "a part differs");
    }
}

std::vector<double> read_all(const data::Reader& reader, Read read, data::Split split, const Ids& ids,
                             const Shape& sample) {
  std::vector<double> values(ids.size() * static_cast<std::size_t>(volume(sample)));
  (reader.*read)(split, ids, whole(sample), DType::f64, values.data());
  for (std::int64_t id : ids) check_parts(reader, read, split, id, sample, values.data() + id * volume(sample));
  return values;
}

template<class T>
void put(std::ofstream& out, const std::vector<T>& list) {
  out.write(reinterpret_cast<const char*>(list.data()), static_cast<std::streamsize>(list.size() * sizeof(T)));
}

void put_values(std::ofstream& out, std::size_t count, const Shape& sample, const std::vector<double>& values) {
  Ids header{static_cast<std::int64_t>(count), static_cast<std::int64_t>(sample.size())};
  header.insert(header.end(), sample.begin(), sample.end());
  put(out, header);
  put(out, values);
}

void dump_split(const data::Reader& reader, data::Split split, const data::Expected& expected, std::ofstream& out) {
  const data::Info& info = reader.info();
  Ids ids(static_cast<std::size_t>(split == data::Split::train ? info.train_samples : info.validation_samples));
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<std::int32_t> labels(ids.size());
  if (expected.labels) reader.read_labels(split, ids, labels.data());
  put_values(out, ids.size(), info.sample, read_all(reader, &data::Reader::read_inputs, split, ids, info.sample));
  put(out, labels);
  if (expected.targets)
    put_values(out, ids.size(), *expected.targets,
               read_all(reader, &data::Reader::read_targets, split, ids, *expected.targets));
}

/// Each content of all batches, one after the other.
void dump_batches(const data::Reader& reader, const config::RunConfig& config, std::int64_t steps, std::ofstream& out) {
  const std::int64_t batch = config.data.batch;
  const Shape& sample = reader.info().sample;
  Box inputs = whole(sample);
  inputs.offsets.insert(inputs.offsets.begin(), 0);
  inputs.extents.insert(inputs.extents.begin(), batch);
  const Box rows{{0}, {batch}};
  const std::vector<data::Part> parts{{data::Content::inputs, inputs, DType::f64},
                                      {data::Content::labels, rows, DType::i32},
                                      {data::Content::partner_labels, rows, DType::i32},
                                      {data::Content::shares, rows, DType::f64}};
  const auto source = data::BatchSource::training(
      reader, config.data, {reader.info().train_samples, batch, config.train.seed, config.data.shuffle});
  std::vector<std::vector<std::byte>> all(parts.size());
  data::Batch read;
  for (std::int64_t step = 0; step < steps; ++step) {
    source.read(step, parts, read);
    for (std::size_t p = 0; p < parts.size(); ++p)
      all[p].insert(all[p].end(), read.parts[p].begin(), read.parts[p].end());
  }
  put_values(out, static_cast<std::size_t>(steps * batch), sample, {});
  for (const auto& list : all) put(out, list);
}

Shape shape_of(const std::string& text) {
  Shape shape;
  std::istringstream in(text);
  for (std::string extent; std::getline(in, extent, 'x');) shape.push_back(std::stoll(extent));
  return shape;
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) fail("dump_samples: got {} arguments expected at least 4", arguments.size());
  const config::Table root = config::Table::parse(config::read_file(arguments[0]), arguments[0]);
  const config::RunConfig config = config::read_run_config(root);
  data::Expected expected{root.table("model").integers("input", config::required), std::stoll(arguments[1]),
                          config.train.seed};
  const bool batches = arguments[2] == "steps";
  if (arguments.size() > 4 && !batches) expected.targets = shape_of(arguments[4]);
  expected.labels = expected.classes > 0;
  const auto reader = data::open_reader(config.data, expected);
  std::ofstream out(arguments[3], std::ios::binary);
  if (batches)
    dump_batches(*reader, config, std::stoll(arguments.at(4)), out);
  else
    dump_split(*reader, arguments[2] == "train" ? data::Split::train : data::Split::validation, expected, out);
  if (!out.flush()) fail_running("{}: can not be written", arguments[3]);
}

} // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "internal error: %s\n", error.what());
    return 99;
  }
}
