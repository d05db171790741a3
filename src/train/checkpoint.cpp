#include "train/checkpoint.hpp"

#include "base/error.hpp"
#include "io/gather.hpp"
#include "io/hdf5.hpp"
#include "train/checkpoint_files.hpp"
#include "train/not_finite.hpp"
#include "train/on_root.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

namespace soybean::train {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t format_version = 2;
constexpr const char* checksum_attribute = "header_checksum";

std::string dataset_name(const graph::Tensor& tensor) {
  return (tensor.role == graph::Role::parameter ? "parameters/" : "state/") + tensor.name;
}

/// Whether this rank writes its block: of those that hold the same one, the first does.
bool is_primary(const runtime::Block& block, const runtime::Context& context) {
  for (std::size_t cut = 0; cut < block.tiling.size(); ++cut)
    if (block.tiling[cut].kind == tiling::Kind::replicate &&
        tiling::coordinate(context.mesh, context.rank, static_cast<int>(cut)) != 0)
      return false;
  return true;
}

bool is_kept(const graph::Tensor& tensor) {
  return tensor.producer == graph::none && (tensor.role == graph::Role::parameter || tensor.role == graph::Role::state);
}

void write_header(const io::File& file, const Job& job, std::int64_t step, const Best& best) {
  if (best.step >= 0) io::write_attribute(file, "best", to_json(best));
  const std::int64_t batch = job.config.data.batch;
  const std::int64_t samples = job.reader->info().train_samples;
  io::write_attribute(file, "format", format_version);
  io::write_attribute(file, "step", step);
  io::write_attribute(file, "epoch", step * batch / samples);
  io::write_attribute(file, "samples_seen", step * batch);
  io::write_attribute(file, "train_samples", samples);
  io::write_attribute(file, "seed", static_cast<std::int64_t>(job.config.train.seed));
  io::write_attribute(file, "batch", batch);
  io::write_attribute(file, "precision", std::string(to_string(job.graph.precision)));
  io::write_attribute(file, "model", job.graph.name);
  io::write_attribute(file, "config", job.resolved);
}

/// To be written last.
void write_checksum(const io::File& file) {
  io::write_attribute(file, checksum_attribute, fmt::format("{:016x}", io::header_checksum(file, checksum_attribute)));
}

/// Throws Error unless the file's structures and header are whole and of this format. Nothing in the header is to be
/// believed before.
void check_whole(const io::File& file) {
  const std::string& path = file.path;
  if (!io::has_attribute(file, "format"))
    fail("{}: got an HDF5 file that is no checkpoint expected one written by soybean_train. check the path", path);
  const std::int64_t format = io::read_integer_attribute(file, "format");
  if (format != format_version)
    fail("{}: format version, got {} expected {}. it was written by another version of soybean_train", path, format,
         format_version);
  const std::string stored = io::read_text_attribute(file, checksum_attribute);
  if (stored != fmt::format("{:016x}", io::header_checksum(file, checksum_attribute)))
    fail("{}: its header, got a checksum that does not match expected the one written with it. the file is damaged",
         path);
}

/// What of a checkpoint is not as it must be here: "seed 1 expected 2", ….
struct Differences {
  std::vector<std::string> found, settings;

  void compare(const char* what, const auto& stored, const auto& wanted, const char* setting) {
    if (stored == wanted) return;
    found.push_back(fmt::format("{} {} expected {}", what, stored, wanted));
    settings.emplace_back(setting);
  }
};

Differences differences_of_settings(const io::File& file, const Job& job) {
  Differences all;
  all.compare("precision", io::read_text_attribute(file, "precision"), std::string(to_string(job.graph.precision)),
              "train.precision");
  all.compare("seed", io::read_integer_attribute(file, "seed"), static_cast<std::int64_t>(job.config.train.seed),
              "train.seed");
  all.compare("batch", io::read_integer_attribute(file, "batch"), job.config.data.batch, "data.batch");
  all.compare("training samples", io::read_integer_attribute(file, "train_samples"), job.reader->info().train_samples,
              "data.path or data.samples");
  return all;
}

/// The tensors, which must be exactly those of the model.
std::vector<std::string> differences_of_tensors(const io::File& file, const Job& job) {
  std::vector<std::string> wanted, found;
  for (const graph::Tensor& tensor : job.graph.tensors) {
    if (!is_kept(tensor)) continue;
    wanted.push_back(dataset_name(tensor));
    if (!io::exists(file, wanted.back())) {
      found.push_back("no " + wanted.back());
      continue;
    }
    const io::DatasetInfo info = io::dataset_info(file, wanted.back());
    if (info.shape != tensor.shape)
      found.push_back(fmt::format("{} {} expected {}", wanted.back(), to_string(info.shape), to_string(tensor.shape)));
  }
  std::sort(wanted.begin(), wanted.end());
  for (const std::string group : {"parameters", "state"})
    for (const std::string& name : io::dataset_names(file, group))
      if (!std::binary_search(wanted.begin(), wanted.end(), fmt::format("{}/{}", group, name)))
        found.push_back(fmt::format("{}/{} expected no such tensor", group, name));
  return found;
}

/// Throws Error, naming all that differs, unless the job can go on from the checkpoint, whose header is whole.
void check_fits(const io::File& file, const Job& job) {
  std::vector<std::string> tensors = differences_of_tensors(file, job);
  const Differences settings = differences_of_settings(file, job);
  if (tensors.empty() && settings.found.empty()) return;
  if (tensors.empty())
    fail("{}: got a checkpoint with {} as configured. set {} to the checkpoint's", file.path,
         fmt::join(settings.found, ", "), fmt::join(settings.settings, ", "));
  const std::size_t count = tensors.size(), shown = std::min<std::size_t>(count, 3);
  std::vector<std::string> all;
  const std::string model = io::read_text_attribute(file, "model");
  if (model != job.graph.name) all.push_back(fmt::format("model '{}' expected '{}'", model, job.graph.name));
  all.insert(all.end(), tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(shown));
  if (count > shown) all.push_back(fmt::format("{} more {}", count - shown, count - shown == 1 ? "tensor" : "tensors"));
  all.insert(all.end(), settings.found.begin(), settings.found.end());
  const auto is_state = [](const std::string& difference) { return difference.find("state/") != std::string::npos; };
  const bool same_layers = model == job.graph.name && std::all_of(tensors.begin(), tensors.end(), is_state);
  fail("{}: got a checkpoint of another model or optimizer expected one of this: {}. {}", file.path,
       fmt::join(all, ", "),
       same_layers
           ? "the layers are the same: train.optimizer, train.ema and what is frozen must stay as they were in a "
             "run that goes on; another run.dir with train.init_from takes its weights"
           : "give --resume a checkpoint of this model, or choose another run.dir to begin anew");
}

/// Adds to an error about `path` which older checkpoint could be used instead, or where it is.
[[noreturn]] void offer_another(comm::Comm& comm, const std::string& path, const Error& error) {
  const std::string offer = text_from_root(comm, [&] {
    const std::string moved = moved_to(path);
    if (!moved.empty())
      return fmt::format(". it was moved to {0}: --resume={0} goes on from it, --resume from the latest one", moved);
    const std::string before = one_before(path);
    return before.empty() ? before : fmt::format(". the checkpoint before it: --resume={}", before);
  });
  Error extended(error.what() + offer, error.code());
  extended.mark_on_all_ranks();
  throw extended;
}

/// Opens a whole checkpoint on rank 0; none elsewhere. What is damaged is refused with the one before it.
std::optional<io::File> open_whole(comm::Comm& comm, const std::string& path) {
  std::optional<io::File> file;
  on_root(comm, [&] {
    if (!io::is_checked(path))
      fail("{}: got an HDF5 file that is no checkpoint, or one of another format version, expected a checkpoint of "
           "format version {}. it was written by another program or by an older soybean_train, or is damaged",
           path, format_version);
  });
  try {
    on_root(comm, [&] {
      file = io::open_read(path);
      check_whole(*file);
    });
  } catch (const Error& error) {
    offer_another(comm, path, error);
  }
  return file;
}

} // namespace

std::int64_t checkpoint_bytes(const Job& job) {
  // Measured with HDF5 1.10: the file takes 3 to 7 KB, each dataset some 330 bytes, of which there are two per tensor.
  constexpr std::int64_t of_file = 7000, of_dataset = 310;
  std::int64_t bytes = of_file + static_cast<std::int64_t>(job.resolved.size());
  for (const graph::Tensor& tensor : job.graph.tensors)
    if (is_kept(tensor)) {
      const auto checksums = static_cast<std::int64_t>(io::slabs(tensor.shape, size_of(tensor.dtype)).size());
      const auto name = static_cast<std::int64_t>(tensor.name.size());
      bytes += graph::bytes(tensor) + 8 * checksums + 2 * (of_dataset + name);
    }
  return bytes;
}

std::string write_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& run_dir,
                             std::int64_t step, const Standing& standing) {
  const runtime::Context& context = executor.context();
  comm::Comm& comm = context.comm;
  const fs::path folder = checkpoint_folder(run_dir);
  const std::string name = checkpoint_name(step);
  const fs::path temporary = folder / (name + ".tmp");
  std::optional<io::File> file;
  try {
    on_root(comm, [&] {
      std::error_code error;
      fs::create_directories(folder, error);
      if (error) fail_running("{}: can not be made, got '{}'", folder.string(), error.message());
      io::check_room(temporary.string(), checkpoint_bytes(job));
      file = io::create(temporary.string());
      write_header(*file, job, step, standing.best);
    });
    std::string bad; // the first tensor with values that are not finite
    for (const runtime::Block& block : executor.persistent()) {
      const std::string dataset = dataset_name(job.graph.tensors[block.tensor]);
      const std::int64_t count = io::write_tensor(comm, context.exec, file ? &*file : nullptr, dataset, block.view,
                                                  is_primary(block, context));
      if (count > 0 && bad.empty()) bad = fmt::format("{}, got {} infinite or undefined values", dataset, count);
    }
    on_root(comm, [&] {
      const std::string sample = bad.empty() ? std::string() : bad_training_sample(job, step);
      if (!sample.empty())
        fail_running(
            "{}. after step {} weights are undefined for it: mend the sample or leave it out; no checkpoint of "
            "this step is written, earlier ones are kept",
            sample, step);
      if (!bad.empty())
        fail_running("step {}: {} expected finite ones. lower train.optimizer.lr; no checkpoint of this step is "
                     "written, earlier ones are kept",
                     step, bad);
      write_checksum(*file);
      io::close_synced(std::move(*file));
      file.reset();
      put_in_place(folder, temporary, name);
      if (standing.is_best) mark_best(folder, name);
      prune(folder, name, job.config.checkpoint.keep);
    });
  } catch (const Error&) {
    file.reset();
    std::error_code ignored;
    if (comm.rank() == 0) fs::remove(temporary, ignored);
    throw;
  }
  return (folder / name).string();
}

std::optional<std::string> latest_checkpoint(comm::Comm& comm, const std::string& run_dir) {
  std::string path = text_from_root(comm, [&] { return latest_in(run_dir); });
  if (path.empty()) return std::nullopt;
  return path;
}

void check_checkpoint(const Job& job, comm::Comm& comm, const std::string& path) {
  const std::optional<io::File> file = open_whole(comm, path);
  on_root(comm, [&] { check_fits(*file, job); });
}

std::string data_changes(const Job& job, comm::Comm& comm, const std::string& path) {
  return text_from_root(comm, [&] {
    const std::vector<std::string> changes =
        config::data_changes(io::read_text_attribute(io::open_read(path), "config"), job.resolved);
    if (changes.empty()) return std::string();
    return fmt::format("note: {}. from here on the samples are not those the run would have gone on with\n",
                       fmt::join(changes, "; "));
  });
}

Restored read_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& path) {
  const runtime::Context& context = executor.context();
  comm::Comm& comm = context.comm;
  const std::optional<io::File> file = open_whole(comm, path);
  Restored restored;
  const std::string best = text_from_root(comm, [&] {
    check_fits(*file, job);
    restored.step = io::read_integer_attribute(*file, "step");
    return io::has_attribute(*file, "best") ? io::read_text_attribute(*file, "best") : std::string();
  });
  try {
    for (const runtime::Block& block : executor.persistent())
      io::read_tensor(comm, context.exec, file ? &*file : nullptr, dataset_name(job.graph.tensors[block.tensor]),
                      block.view);
  } catch (const Error& error) {
    offer_another(comm, path, error);
  }
  comm.broadcast(&restored.step, sizeof(restored.step), 0);
  if (!best.empty()) restored.best = best_from_json(best);
  return restored;
}

namespace {

/// Per tensor, whether it is one of the model itself: a parameter, or running statistics.
std::vector<char> tensors_of_model(const graph::Graph& graph) {
  std::vector<char> found(graph.tensors.size(), 0);
  for (std::size_t t = 0; t < found.size(); ++t) {
    const graph::Tensor& tensor = graph.tensors[t];
    if (is_kept(tensor) && tensor.role == graph::Role::parameter) found[t] = 1;
    if (tensor.producer != graph::none && tensor.in_evaluation != graph::none) found[tensor.in_evaluation] = 1;
  }
  return found;
}

/// Per tensor, whether validation reads it.
std::vector<char> evaluated_tensors(const graph::Graph& graph) {
  std::vector<char> read(graph.tensors.size(), 0);
  const std::vector<char> active = graph::active_nodes(graph, false);
  for (std::size_t n = 0; n < active.size(); ++n) {
    if (!active[n]) continue;
    for (graph::TensorId t : graph.nodes[n].inputs)
      if (const graph::TensorId operand = graph::operand(graph, t, false); is_kept(graph.tensors[operand]))
        read[operand] = 1;
  }
  return read;
}

/// Refuses tensors of the file with another shape than `wanted` ones of the model. Rank 0.
void check_shapes(const io::File& file, const std::vector<const graph::Tensor*>& wanted, std::string_view key) {
  std::vector<std::string> wrong;
  for (const graph::Tensor* tensor : wanted) {
    const io::DatasetInfo info = io::dataset_info(file, dataset_name(*tensor));
    if (info.shape != tensor->shape)
      wrong.push_back(fmt::format("{} {} expected {}", tensor->name, to_string(info.shape), to_string(tensor->shape)));
  }
  if (!wrong.empty())
    fail("{}: {}, got {}. give the layers of other shapes other names, or take another file", key, file.path,
         fmt::join(wrong, ", "));
}

/// The tensors of the model itself that the file has. Rank 0.
std::vector<const graph::Tensor*> in_file(const Job& job, const io::File& file) {
  std::vector<const graph::Tensor*> found;
  const std::vector<char> of_model = tensors_of_model(job.graph);
  for (std::size_t t = 0; t < of_model.size(); ++t)
    if (of_model[t] && io::exists(file, dataset_name(job.graph.tensors[t]))) found.push_back(&job.graph.tensors[t]);
  return found;
}

/// Reads the blocks of tensors marked, in whichever precision they were stored. Collective.
void read_blocks(const Job& job, const runtime::Executor& executor, const std::optional<io::File>& file,
                 const std::vector<char>& marked) {
  const runtime::Context& context = executor.context();
  for (const runtime::Block& block : executor.persistent())
    if (marked[block.tensor])
      io::read_tensor(context.comm, context.exec, file ? &*file : nullptr,
                      dataset_name(job.graph.tensors[block.tensor]), block.view, io::Stored::any_precision);
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> list;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    list.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

} // namespace

Matches check_weights(const Job& job, comm::Comm& comm, const std::string& path) {
  const std::optional<io::File> file = open_whole(comm, path);
  Matches matches;
  std::string read, missing, unused;
  on_root(comm, [&] {
    const std::vector<const graph::Tensor*> found = in_file(job, *file);
    if (found.empty())
      fail("train.init_from: {}, got no tensor of this model expected some weights with names of its layers. compare "
           "the names of the layers",
           path);
    check_shapes(*file, found, "train.init_from");
    const std::vector<char> of_model = tensors_of_model(job.graph);
    for (std::size_t t = 0; t < of_model.size(); ++t)
      if (const graph::Tensor& tensor = job.graph.tensors[t]; of_model[t])
        (io::exists(*file, dataset_name(tensor)) ? read : missing) += tensor.name + "\n";
    for (const std::string& name : io::dataset_names(*file, "parameters"))
      if (const auto t = graph::find_tensor(job.graph, name); t == graph::none) unused += name + "\n";
  });
  for (auto [text, list] : {std::pair{&read, &matches.read}, {&missing, &matches.missing}, {&unused, &matches.unused}})
    *list = lines(comm::broadcast_text(comm, *text));
  matches.precision = text_from_root(comm, [&] { return io::read_text_attribute(*file, "precision"); });
  return matches;
}

void read_weights(const Job& job, const runtime::Executor& executor, const std::string& path) {
  comm::Comm& comm = executor.context().comm;
  const std::optional<io::File> file = open_whole(comm, path);
  std::vector<char> marked(job.graph.tensors.size(), 0);
  on_root(comm, [&] {
    for (const graph::Tensor* tensor : in_file(job, *file)) marked[tensor - job.graph.tensors.data()] = 1;
  });
  comm.broadcast(marked.data(), static_cast<std::int64_t>(marked.size()), 0);
  read_blocks(job, executor, file, marked);
}

namespace {

/// Throws Error unless the file has the marked tensors. Rank 0.
void check_marked(const Job& job, const io::File& file, const std::vector<char>& marked) {
  std::vector<const graph::Tensor*> wanted;
  std::vector<std::string> missing;
  for (std::size_t t = 0; t < marked.size(); ++t) {
    if (!marked[t]) continue;
    const graph::Tensor& tensor = job.graph.tensors[t];
    if (io::exists(file, dataset_name(tensor)))
      wanted.push_back(&tensor);
    else
      missing.push_back(dataset_name(tensor));
  }
  if (const std::size_t count = missing.size(); count > 0) {
    missing.resize(std::min<std::size_t>(count, 3));
    if (count > 3) missing.push_back(fmt::format("{} more", count - 3));
    fail("--eval: {}, got no {} expected a checkpoint of this model. compare the names of the layers, and train.ema",
         file.path, fmt::join(missing, ", "));
  }
  check_shapes(file, wanted, "--eval");
}

} // namespace

void check_evaluated(const Job& job, comm::Comm& comm, const std::string& path) {
  const std::optional<io::File> file = open_whole(comm, path);
  on_root(comm, [&] { check_marked(job, *file, evaluated_tensors(job.graph)); });
}

std::int64_t read_evaluated(const Job& job, const runtime::Executor& executor, const std::string& path) {
  comm::Comm& comm = executor.context().comm;
  const std::optional<io::File> file = open_whole(comm, path);
  const std::vector<char> marked = evaluated_tensors(job.graph);
  std::int64_t step = 0;
  on_root(comm, [&] {
    check_marked(job, *file, marked);
    step = io::read_integer_attribute(*file, "step");
  });
  read_blocks(job, executor, file, marked);
  comm.broadcast(&step, sizeof(step), 0);
  return step;
}

} // namespace soybean::train
