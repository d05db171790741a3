#include "train/checkpoint.hpp"

#include "base/error.hpp"
#include "io/gather.hpp"
#include "io/hdf5.hpp"
#include "train/on_root.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

namespace soybean::train {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t format_version = 1;

fs::path folder_of(const std::string& run_dir) {
  return fs::path(run_dir) / "checkpoints";
}

/// The finished checkpoints of a folder, oldest first.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".h5")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    const std::string x = a.filename().string(), y = b.filename().string();
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return found;
}

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

/// At most what the checkpoint's file takes.
std::int64_t file_bytes(const Job& job, const runtime::Executor& executor) {
  std::int64_t bytes = (std::int64_t{1} << 16) + static_cast<std::int64_t>(2 * job.resolved.size());
  for (const runtime::Block& block : executor.persistent())
    bytes += graph::bytes(job.graph.tensors[block.tensor]) + 4096;
  return bytes;
}

void write_header(const io::File& file, const Job& job, std::int64_t step) {
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

void publish(const fs::path& folder, const fs::path& temporary, const std::string& name, std::int64_t keep) {
  std::error_code error;
  fs::rename(temporary, folder / name, error);
  if (error) fail_running("{}: can not be put in place, got '{}'", (folder / name).string(), error.message());
  const fs::path link = folder / "latest.h5", new_link = folder / "latest.h5.tmp";
  fs::remove(new_link, error);
  fs::create_symlink(name, new_link, error);
  if (!error) fs::rename(new_link, link, error);
  if (error) fail_running("{}: can not be put in place, got '{}'", link.string(), error.message());
  const std::vector<fs::path> all = checkpoints_in(folder);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < all.size(); ++i)
    if (all[i].filename() != name) fs::remove(all[i], error); // one that can not be removed does no harm
}

void require_equal(const std::string& path, const char* what, const auto& stored, const auto& wanted,
                   const char* hint) {
  if (stored == wanted) return;
  fail("{}: {}, got {} expected {} as configured. {}", path, what, stored, wanted, hint);
}

void check_header(const io::File& file, const Job& job) {
  const std::string& path = file.path;
  if (!io::has_attribute(file, "format"))
    fail("{}: got an HDF5 file that is no checkpoint expected one written by soybean_train. check the path", path);
  require_equal(path, "format", io::read_integer_attribute(file, "format"), format_version,
                "it was written by another version");
  require_equal(path, "precision", io::read_text_attribute(file, "precision"),
                std::string(to_string(job.graph.precision)), "set train.precision to the checkpoint's");
  require_equal(path, "seed", io::read_integer_attribute(file, "seed"),
                static_cast<std::int64_t>(job.config.train.seed), "set train.seed to the checkpoint's");
  require_equal(path, "batch", io::read_integer_attribute(file, "batch"), job.config.data.batch,
                "set data.batch to the checkpoint's: the place in the data counts in batches");
  require_equal(path, "train_samples", io::read_integer_attribute(file, "train_samples"),
                job.reader->info().train_samples, "the training data is another");
  const std::int64_t step = io::read_integer_attribute(file, "step");
  if (step < 0) fail("{}: step, got {} expected a number of steps done. the file was changed", path, step);
  require_equal(path, "samples_seen", io::read_integer_attribute(file, "samples_seen"), step * job.config.data.batch,
                "its attributes do not fit together: the file was changed");
  require_equal(path, "epoch", io::read_integer_attribute(file, "epoch"),
                step * job.config.data.batch / job.reader->info().train_samples,
                "its attributes do not fit together: the file was changed");
}

/// The checkpoint holds exactly the tensors the model has.
void check_tensors(const io::File& file, const Job& job, const runtime::Executor& executor) {
  std::vector<std::string> wanted, stored;
  for (const runtime::Block& block : executor.persistent()) {
    const graph::Tensor& tensor = job.graph.tensors[block.tensor];
    wanted.push_back(dataset_name(tensor));
    if (!io::exists(file, wanted.back()))
      fail("{}: {}, got no such tensor expected one as in the model. the checkpoint is of another model or optimizer",
           file.path, wanted.back());
    const io::DatasetInfo info = io::dataset_info(file, wanted.back());
    if (info.shape != tensor.shape)
      fail("{}: {}, got shape {} expected {} as in the model", file.path, wanted.back(), to_string(info.shape),
           to_string(tensor.shape));
  }
  for (const char* group : {"parameters", "state"})
    for (const std::string& name : io::dataset_names(file, group)) stored.push_back(std::string(group) + "/" + name);
  std::sort(wanted.begin(), wanted.end());
  for (const std::string& name : stored)
    if (!std::binary_search(wanted.begin(), wanted.end(), name))
      fail("{}: {}, got a tensor expected none of that name in the model. the checkpoint is of another model or "
           "optimizer",
           file.path, name);
}

/// Adds to an error about `path` which older checkpoint could be used instead.
[[noreturn]] void offer_the_one_before(comm::Comm& comm, const std::string& path, Error error) {
  const std::string offer = text_from_root(comm, [&] {
    std::error_code ignored;
    fs::path file = fs::path(path);
    if (fs::is_symlink(file, ignored)) file = file.parent_path() / fs::read_symlink(file, ignored);
    std::string before;
    for (const fs::path& other : checkpoints_in(file.parent_path().empty() ? "." : file.parent_path())) {
      if (other.filename() == file.filename()) break;
      before = other.string();
    }
    return before.empty() ? before : fmt::format(". the checkpoint before it: --resume={}", before);
  });
  Error extended(error.what() + offer, error.code());
  extended.mark_on_all_ranks();
  throw extended;
}

/// Opens a checkpoint on rank 0; none elsewhere. What is damaged is refused with the one before it.
std::optional<io::File> open_or_offer(comm::Comm& comm, const std::string& path) {
  std::optional<io::File> file;
  try {
    on_root(comm, [&] { file = io::open_read(path); });
  } catch (const Error& error) {
    offer_the_one_before(comm, path, error);
  }
  return file;
}

} // namespace

std::string write_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& run_dir,
                             std::int64_t step) {
  const runtime::Context& context = executor.context();
  comm::Comm& comm = context.comm;
  const fs::path folder = folder_of(run_dir);
  const std::string name = fmt::format("step-{:08d}.h5", step);
  const fs::path temporary = folder / (name + ".tmp");
  std::optional<io::File> file;
  try {
    on_root(comm, [&] {
      std::error_code error;
      fs::create_directories(folder, error);
      if (error) fail_running("{}: can not be made, got '{}'", folder.string(), error.message());
      io::check_room(temporary.string(), file_bytes(job, executor));
      file = io::create(temporary.string());
      write_header(*file, job, step);
    });
    std::string bad; // the first tensor with values that are not finite
    for (const runtime::Block& block : executor.persistent()) {
      const std::string dataset = dataset_name(job.graph.tensors[block.tensor]);
      const std::int64_t count = io::write_tensor(comm, context.exec, file ? &*file : nullptr, dataset, block.view,
                                                  is_primary(block, context));
      if (count > 0 && bad.empty()) bad = fmt::format("{}, got {} infinite or undefined values", dataset, count);
    }
    on_root(comm, [&] {
      if (!bad.empty())
        fail_running(
            "step {}: {} expected finite ones. lower train.optimizer.lr or look for bad values in the data; no "
            "checkpoint of this step is written, earlier ones are kept",
            step, bad);
      io::close_synced(std::move(*file));
      file.reset();
      publish(folder, temporary, name, job.config.checkpoint.keep);
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
  const std::string path = text_from_root(comm, [&] {
    const fs::path link = folder_of(run_dir) / "latest.h5";
    std::error_code error;
    if (!fs::is_symlink(link, error)) {
      // A copied folder may hold files instead of links.
      if (fs::exists(link, error)) return link.string();
      const std::vector<fs::path> all = checkpoints_in(folder_of(run_dir));
      return all.empty() ? std::string() : all.back().string();
    }
    return (folder_of(run_dir) / fs::read_symlink(link)).string();
  });
  if (path.empty()) return std::nullopt;
  return path;
}

void check_checkpoint(const Job& job, comm::Comm& comm, const std::string& path) {
  const std::optional<io::File> file = open_or_offer(comm, path);
  on_root(comm, [&] { check_header(*file, job); });
}

std::int64_t read_checkpoint(const Job& job, const runtime::Executor& executor, const std::string& path) {
  const runtime::Context& context = executor.context();
  comm::Comm& comm = context.comm;
  const std::optional<io::File> file = open_or_offer(comm, path);
  std::int64_t step = 0;
  on_root(comm, [&] {
    check_header(*file, job);
    check_tensors(*file, job, executor);
    step = io::read_integer_attribute(*file, "step");
  });
  try {
    for (const runtime::Block& block : executor.persistent())
      io::read_tensor(comm, context.exec, file ? &*file : nullptr, dataset_name(job.graph.tensors[block.tensor]),
                      block.view);
  } catch (const Error& error) {
    offer_the_one_before(comm, path, error);
  }
  comm.broadcast(&step, sizeof(step), 0);
  return step;
}

} // namespace soybean::train
