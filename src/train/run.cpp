#include "train/run.hpp"

#include "comm/mpi_session.hpp"
#include "frontend/training.hpp"
#include "plan/plan_file.hpp"
#include "plan/report.hpp"
#include "plan/words.hpp"
#include "program/memory.hpp"
#include "runtime/agreement.hpp"
#include "runtime/binding.hpp"
#include "runtime/initialise.hpp"
#include "runtime/preflight.hpp"
#include "train/checkpoint.hpp"
#include "train/checkpoint_files.hpp"
#include "train/loop.hpp"
#include "train/not_finite.hpp"
#include "train/on_root.hpp"
#include "train/output.hpp"
#include "train/progress.hpp"
#include "train/run_dir.hpp"
#include "train/signals.hpp"
#include "train/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <system_error>
#include <utility>

namespace soybean::train {

namespace {

void print(const comm::Comm& comm, const std::string& text) {
  if (comm.rank() == 0) say(text);
}

/// Prints what the program was started for, which must not be lost.
void print_result(const comm::Comm& comm, const std::string& text) {
  if (comm.rank() == 0 && !say(text))
    fail_running("standard output: can not be written, got '{}' expected room for what is printed",
                 std::generic_category().message(errno));
}

/// The job again in another precision. A plan file belongs to one precision: its tilings are taken over.
Job with_precision(const RunRequest& request, comm::Comm& comm, const std::vector<int>& ranks_per_host, const Job& job,
                   const std::string& precision) {
  Request other = request.job;
  const config::TrainOptions& chosen = job.config.train;
  for (const std::string& assignment :
       {"train.precision=\"" + precision + "\"", fmt::format("train.microbatches={}", chosen.microbatches),
        "train.recompute=\"" + chosen.recompute + "\""})
    other.overrides.push_back(assignment);
  return make_job(other, comm, ranks_per_host, job.config.parallel.plan.empty() ? nullptr : &job.plan);
}

/// What this rank computes on. Collective.
device::Exec make_exec(const Job& job, comm::Comm& comm) {
  const config::RunOptions& run = job.config.run;
  const config::TrainOptions& train = job.config.train;
  const int device = runtime::choose_device(
      comm, {.device = run.device, .sharing = run.share_devices, .precision = train.precision, .tf32 = train.tf32});
  return {runtime::thread_count(static_cast<int>(run.threads), comm), device,
          train.tf32 ? device::Math::tf32 : device::Math::fp32};
}

/// The back end the user wants, for ranks that compute on this accelerator (-1: the host). Collective.
std::unique_ptr<comm::Comm> connect(const Job& job, const std::vector<std::string>& hosts, int device = -1) {
  std::unique_ptr<comm::Comm> comm =
      comm::make_comm(job.config.parallel.comm,
                      {.device = device, .device_messages = job.config.parallel.mpi_device_memory, .hosts = hosts});
  comm->stall_seconds = job.config.run.stall_seconds;
  return comm;
}

ExitCode run_verify(const RunRequest& request, const Job& job, std::unique_ptr<comm::Comm> comm,
                    const std::vector<std::string>& hosts) {
  const std::vector<int> ranks_per_host = comm::ranks_per_host(hosts);
  const Job single = with_precision(request, *comm, ranks_per_host, job, "fp32");
  const Job twice = with_precision(request, *comm, ranks_per_host, job, "fp64");
  const device::Exec exec = make_exec(single, *comm);
  if (exec.on_device()) comm = connect(job, hosts, exec.device());
  const VerifyReport report = verify(single, twice, *comm, exec);
  print(*comm, to_string(report));
  if (report.passed()) return ExitCode::done;
  Error error("--verify: the parallel run does not follow the serial one, see the table above", ExitCode::failed);
  error.mark_on_all_ranks();
  throw error;
}

/// The checkpoint to validate, checked as far as its header tells.
std::string choose_evaluated(const std::string& asked, const Job& job, comm::Comm& comm) {
  const std::string& dir = job.config.run.dir;
  std::string path = asked.empty() ? latest_checkpoint(comm, dir).value_or("") : asked;
  on_all_ranks([&] {
    if (path.empty()) fail("--eval: {}, got no checkpoint expected one. train first, or name one: --eval=PATH", dir);
    if (job.reader->info().validation_samples == 0)
      fail("--eval: data, got no validation samples expected some. see src/config/README.md on [data]");
  });
  check_evaluated(job, comm, path);
  return path;
}

/// Validates a checkpoint: prints loss and accuracy (the whole as JSON with --json) and writes `evaluation.json`.
ExitCode run_evaluation(const RunRequest& request, const Job& job, comm::Comm& comm, const device::Exec& exec,
                        const std::string& path) {
  const std::string& dir = job.config.run.dir;
  runtime::agree(job.graph, job.plan, job.programs, comm);
  const runtime::Context context{exec, comm, job.plan.mesh, comm.rank(), false};
  const std::vector<program::Program> programs = {job.programs[evaluate_program]};
  runtime::preflight(context, runtime::memory_bytes(job.graph, programs, context), dir); // whether there is the memory
  runtime::Executor executor(job.graph, programs, context);
  const std::int64_t step = read_evaluated(job, executor, path);
  const auto begin = std::chrono::steady_clock::now();
  const Validation v = validate(job, executor, 0);
  if (!std::isfinite(v.loss)) fail_for_validation(job, comm, path, v.loss);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::string text = to_json(Evaluation{.checkpoint = path,
                                              .step = step,
                                              .validation = v,
                                              .samples = job.reader->info().validation_samples,
                                              .seconds = seconds,
                                              .ranks = comm.size(),
                                              .strategy = job.plan.strategy});
  on_root(comm, [&] {
    make_run_dir(dir);
    write_file(dir + "/evaluation.json", text);
  });
  print_result(comm, request.json ? text
                                  : fmt::format("{} (step {}): validation loss {:.4f}{}\n", path, step, plain(v.loss),
                                                accuracy_text(v.accuracy, 2)));
  return ExitCode::done;
}

/// What a run begins with: nothing, the latest checkpoint of its own folder, or one that the user named.
struct Start {
  std::optional<std::string> checkpoint;
  bool goes_on = false; ///< the files in the folder are of this run
};

/// Whether train.init_from counts: a run that goes on from a checkpoint has no use for it.
bool takes_weights(const Job& job, const Start& start) {
  return !start.checkpoint && !job.config.train.init_from.empty();
}

/// Checks what train.init_from gives and says what will be loaded.
void announce_weights(const RunRequest& request, const Job& job, comm::Comm& comm) {
  const std::string& path = job.config.train.init_from;
  const Matches matches = check_weights(job, comm, path);
  if (request.json) return;
  const std::string precision(to_string(job.graph.precision));
  std::string text = fmt::format(
      "{} tensors begin with those of {}{}\n", matches.read.size(), path,
      matches.precision == precision ? "" : fmt::format(", which are {} and become {}", matches.precision, precision));
  if (!matches.missing.empty())
    text += fmt::format("  not in the file, begin as initialised: {}\n", fmt::join(matches.missing, ", "));
  if (!matches.unused.empty()) text += fmt::format("  not in the model: {}\n", fmt::join(matches.unused, ", "));
  print(comm, text);
}

/// Chooses and checks the checkpoint; writes nothing.
Start choose_start(const RunRequest& request, const Job& job, comm::Comm& comm) {
  if (!request.resume) return {};
  Start start{.checkpoint = request.resume};
  if (request.resume->empty()) {
    start.checkpoint = latest_checkpoint(comm, job.config.run.dir);
    start.goes_on = start.checkpoint || request.begin_from.empty();
    if (!start.goes_on) start.checkpoint = request.begin_from;
  }
  if (start.checkpoint)
    check_checkpoint(job, comm, *start.checkpoint);
  else if (!request.json)
    print(comm, fmt::format("nothing to resume: there is no checkpoint in {} yet, starting from the beginning\n",
                            job.config.run.dir));
  return start;
}

/// Puts what the run starts with into its folder, an earlier run's files out of the way. `first`: the steps of the
/// checkpoint, which becomes the folder's first one, so that the run can go on from it whenever it ends.
void fill_run_dir(const RunRequest& request, const Job& job, comm::Comm& comm, const Start& start, std::int64_t first) {
  const std::string& dir = job.config.run.dir;
  const std::string moved =
      text_from_root(comm, [&] { return start.goes_on ? std::string() : begin_in(dir, start.checkpoint, first); });
  if (!moved.empty() && !request.json)
    print(comm, fmt::format("the files of the earlier run in {} were moved to {}\n", dir, moved));
  on_root(comm, [&] {
    write_file(dir + "/config.toml", job.resolved);
    write_file(dir + "/plan.json", plan::plan_text(job.graph, job.plan));
  });
}

/// What says how long a run is: "train.steps", "train.epochs = 20".
std::string length_key(const Job& job) {
  const config::TrainOptions& train = job.config.train;
  return train.steps > 0 ? "train.steps" : fmt::format("train.epochs = {}", train.epochs);
}

std::string closing(const LoopResult& result, const std::string& dir, bool checkpoints) {
  const Summary& s = result.summary;
  if (result.signal != 0)
    return fmt::format("stopped after step {} on {}; {}\n", s.steps, signal_name(result.signal),
                       checkpoints ? "go on with --resume" : "no checkpoint, as checkpoint.keep = 0 says");
  std::string text = fmt::format("done: {} steps{}, {:.0f} samples/s, {} moved per step", s.steps,
                                 s.stopped_early ? " (stopped early, as train.patience says)" : "",
                                 s.samples_per_second, plan::bytes_text(s.bytes_moved_per_step));
  if (s.validation)
    text += std::isnan(s.validation->accuracy) ? fmt::format("; validation loss {:.4f}", plain(s.validation->loss))
                                               : fmt::format("; validation accuracy {:.2f} %, loss {:.4f}",
                                                             100 * s.validation->accuracy, plain(s.validation->loss));
  if (s.best)
    text += fmt::format("; best at step {}: loss {:.4f}{}", s.best->step, plain(s.best->validation.loss),
                        accuracy_text(s.best->validation.accuracy, 2));
  return text + fmt::format("\nthe run's files are in {}\n", dir);
}

/// Loads what the run starts with and says so.
Restored load(const RunRequest& request, const Job& job, runtime::Executor& executor, const Start& start) {
  comm::Comm& comm = executor.context().comm;
  runtime::initialise_parameters(job.graph, executor, job.config.train.seed);
  if (takes_weights(job, start)) read_weights(job, executor, job.config.train.init_from);
  if (!start.checkpoint) return {};
  const Restored restored = read_checkpoint(job, executor, *start.checkpoint);
  if (!request.json) print(comm, fmt::format("resuming after step {} from {}\n", restored.step, *start.checkpoint));
  if (!request.json) print(comm, data_changes(job, comm, *start.checkpoint));
  return restored;
}

/// For a checkpoint that leaves nothing to do: says so.
ExitCode end_at_once(const RunRequest& request, const Job& job, comm::Comm& comm, const Start& start,
                     std::int64_t first) {
  if (request.json && !start.goes_on)
    on_all_ranks([&] {
      fail("--resume={}: got a checkpoint of step {} expected one with steps left, of {}. there is no summary of a "
           "run without steps",
           *start.checkpoint, first, total_steps(job));
    });
  if (request.json)
    print_result(comm, text_from_root(comm, [&] { return read_file(job.config.run.dir + "/summary.json"); }));
  else
    print(comm, first < total_steps(job)
                    ? fmt::format("nothing to do: the run stopped early at step {}, train.patience = {}. a larger "
                                  "one, or 0, goes on\n",
                                  first, job.config.train.patience)
                    : fmt::format("nothing to do: the run is at step {}, {} asks for {}\n", first, length_key(job),
                                  total_steps(job)));
  return ExitCode::done;
}

/// Scratch of kernels and messages comes on top of what planning knows of: where a plan does not fit with it, plans
/// again with that much less. Collective.
void make_room(Job& job, comm::Comm& comm, const std::vector<int>& ranks_per_host, const device::Exec& exec) {
  const config::ParallelOptions& parallel = job.config.parallel;
  constexpr int tries = 3; // another plan may need more scratch
  for (int i = 0; i < tries && parallel.memory > 0 && parallel.plan.empty(); ++i) {
    const runtime::Context context{exec, comm, job.plan.mesh, comm.rank(), job.config.run.record_steps};
    const std::int64_t needed = comm::max(comm, runtime::memory_bytes(job.graph, job.programs, context));
    if (needed <= parallel.memory) return;
    job.scratch = std::max(job.scratch, needed - program::peak_bytes(job.graph, job.plan));
    plan_job(job, comm, ranks_per_host);
  }
}

/// A plan file may take more than is allowed, and plans one after the other more scratch.
void check_memory(const config::ParallelOptions& parallel, std::int64_t bytes, comm::Comm& comm) {
  const std::int64_t most = comm::max(comm, bytes);
  if (parallel.memory == 0 || most <= parallel.memory) return;
  on_all_ranks([&] {
    fail("{}, got {} for a rank expected at least {}, what this plan takes with scratch of kernels and messages. raise "
         "it, "
         "or take more ranks or a smaller data.batch",
         parallel.memory_where, plan::bytes_text(parallel.memory), plan::bytes_text(most));
  });
}

/// Trains in the run's folder, which it makes.
ExitCode run_training(const RunRequest& request, const Job& job, comm::Comm& comm, const device::Exec& exec,
                      const Start& start) {
  const std::string& dir = job.config.run.dir;
  if (request.traced > 0 && exec.on_device())
    on_all_ranks(
        [] { fail("--trace: got a run on GPUs expected one on CPUs. what runs on a GPU, Nsight Systems shows"); });
  std::optional<RunDirLock> lock; // rank 0
  on_root(comm, [&] {
    if (is_run_dir(dir)) lock.emplace(dir); // before anything of it is read
  });
  const runtime::Context context{exec, comm, job.plan.mesh, comm.rank(), job.config.run.record_steps};
  runtime::agree(job.graph, job.plan, job.programs, comm);
  const std::int64_t memory = runtime::memory_bytes(job.graph, job.programs, context);
  check_memory(job.config.parallel, memory, comm);
  const std::string preflight = runtime::preflight(context, memory, dir);
  if (!request.json) print(comm, preflight + advice(job));
  runtime::Executor executor(job.graph, job.programs, context);
  const Restored restored = load(request, job, executor, start);
  if (start.checkpoint && (restored.step >= total_steps(job) || out_of_patience(job, restored.best)))
    return end_at_once(request, job, comm, start, restored.step);
  on_root(comm, [&] {
    make_run_dir(dir);
    if (!lock) lock.emplace(dir);
    const std::vector<std::string> removed = lock->held() ? remove_unfinished(dir) : std::vector<std::string>();
    if (!removed.empty() && !request.json)
      say(fmt::format("removed what a run that was killed had not finished: {}\n", fmt::join(removed, ", ")));
  });
  fill_run_dir(request, job, comm, start, restored.step);
  const LoopResult result = train(job, executor,
                                  {.first_step = restored.step,
                                   .best = restored.best,
                                   .run_dir = dir,
                                   .quiet = request.json,
                                   .traced = request.traced});
  if (result.signal == 0) {
    const std::string summary = to_json(result.summary);
    on_root(comm, [&] { write_file(dir + "/summary.json", summary); });
    if (request.json) print_result(comm, summary);
  }
  const bool checkpoints = job.config.checkpoint.keep > 0;
  if (!request.json) print(comm, closing(result, dir, checkpoints));
  if (result.signal == 0) return ExitCode::done;
  return checkpoints ? ExitCode::stopped : ExitCode::failed; // 75 asks for a requeue, which would start all over
}

} // namespace

ExitCode run(const RunRequest& request) {
  std::unique_ptr<comm::Comm> comm = comm::make_comm("mpi");
  const std::vector<std::string> hosts = comm::host_names();
  const std::vector<int> ranks_per_host = comm::ranks_per_host(hosts);
  Job job = read_job(request.job, *comm);
  const std::string evaluated = request.eval ? choose_evaluated(*request.eval, job, *comm) : std::string();
  const Start start = choose_start(request, job, *comm);
  if (!request.verify && !request.eval && takes_weights(job, start)) announce_weights(request, job, *comm);
  plan_job(job, *comm, ranks_per_host);
  comm = connect(job, hosts);
  if (request.verify) return run_verify(request, job, std::move(comm), hosts);

  const auto report = [&] {
    return plan::report(job.graph, job.plan, !job.config.parallel.pins.empty()) + frontend::shapes_note(job.graph);
  };
  if (request.dry_run) {
    print_result(*comm, request.json ? plan::plan_text(job.graph, job.plan) : report());
    return ExitCode::done;
  }
  const device::Exec exec = make_exec(job, *comm); // first, as it may be refused
  if (exec.on_device()) comm = connect(job, hosts, exec.device());
  if (!request.eval) make_room(job, *comm, ranks_per_host, exec);
  if (!request.json) print(*comm, report());
  return request.eval ? run_evaluation(request, job, *comm, exec, evaluated)
                      : run_training(request, job, *comm, exec, start);
}

} // namespace soybean::train
