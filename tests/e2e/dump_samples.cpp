// Writes what a data source gives, for tests that hold it to other programs' readers.
//   dump_samples CONFIG.toml CLASSES train|validation OUT
// CONFIG has [model] input, [data] and [train]. Every sample as the reader gives it, in order; every half of a sample
// is held to the whole one. OUT: count, number of dims, dims (i64), values (f64), labels (i32).
#include "base/error.hpp"
#include "config/options.hpp"
#include "data/reader.hpp"

#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace soybean;

struct Samples {
  Shape sample;
  std::vector<double> values;
  std::vector<std::int32_t> labels;
};

void check_parts(const data::Reader& reader, data::Split split, std::int64_t id, const double* expected) {
  const Shape& sample = reader.info().sample;
  const std::vector<std::int64_t> ids{id};
  for (std::size_t d = 0; d < sample.size(); ++d)
    for (const auto& [first, count] :
         {std::pair(std::int64_t{0}, sample[d] / 2), std::pair(sample[d] / 2, sample[d] - sample[d] / 2)}) {
      Box part = whole(sample);
      part.offsets[d] = first;
      part.extents[d] = count;
      std::vector<float> got(static_cast<std::size_t>(volume(part)));
      reader.read_inputs(split, ids, part, DType::f32, got.data());
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

Samples read_all(const data::Reader& reader, data::Split split) {
  Samples all{reader.info().sample, {}, {}};
  const std::int64_t count =
      split == data::Split::train ? reader.info().train_samples : reader.info().validation_samples;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  all.values.resize(static_cast<std::size_t>(count * volume(all.sample)));
  all.labels.resize(ids.size());
  reader.read_inputs(split, ids, whole(all.sample), DType::f64, all.values.data());
  reader.read_labels(split, ids, all.labels.data());
  for (std::int64_t id = 0; id < count; ++id)
    check_parts(reader, split, id, all.values.data() + id * volume(all.sample));
  return all;
}

void write(const Samples& all, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  const auto put = [&](const auto& list) {
    out.write(reinterpret_cast<const char*>(list.data()),
              static_cast<std::streamsize>(list.size() * sizeof(*list.data())));
  };
  std::vector<std::int64_t> header{static_cast<std::int64_t>(all.labels.size()),
                                   static_cast<std::int64_t>(all.sample.size())};
  header.insert(header.end(), all.sample.begin(), all.sample.end());
  put(header);
  put(all.values);
  put(all.labels);
  if (!out.flush()) fail_running("{}: can not be written", path);
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) fail("dump_samples: got {} arguments expected at least 4", arguments.size());
  const config::Table root = config::Table::parse(config::read_file(arguments[0]), arguments[0]);
  const config::RunConfig config = config::read_run_config(root);
  const data::Expected expected{root.table("model").integers("input", config::required), std::stoll(arguments[1]),
                                config.train.seed};
  const auto reader = data::open_reader(config.data, expected);
  write(read_all(*reader, arguments[2] == "train" ? data::Split::train : data::Split::validation), arguments[3]);
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
