#include "train/loop.hpp"

#include "base/error.hpp"
#include "data/loader.hpp"
#include "train/checkpoint.hpp"
#include "train/feed.hpp"
#include "train/measures.hpp"
#include "train/not_finite.hpp"
#include "train/on_root.hpp"
#include "train/output.hpp"
#include "train/progress.hpp"
#include "train/run_dir.hpp"
#include "train/schedule.hpp"
#include "train/signals.hpp"
#include "train/trace_file.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

namespace soybean::train {

namespace {

using Clock = std::chrono::steady_clock;

/// What ranks tell each other after every step.
struct StepNews {
  std::int64_t signal = 0;
  std::int64_t data_bytes = 0, control_bytes = 0;
  double seconds = 0, computing = 0, waiting = 0, reading = 0;
};

struct StepTotals {
  int signal = 0;
  std::int64_t data_bytes = 0, control_bytes = 0;
  double slowest = 0, computing = 0, waiting = 0, reading = 0;
};

StepTotals gather(comm::Comm& comm, const StepNews& mine) {
  const std::vector<std::byte> all = comm.gather_all(std::as_bytes(std::span(&mine, 1)));
  StepTotals totals;
  for (int r = 0; r < comm.size(); ++r) {
    StepNews news;
    std::memcpy(&news, all.data() + static_cast<std::size_t>(r) * sizeof(news), sizeof(news));
    if (totals.signal == 0) totals.signal = static_cast<int>(news.signal);
    totals.data_bytes += news.data_bytes;
    totals.control_bytes += news.control_bytes;
    totals.slowest = std::max(totals.slowest, news.seconds);
    totals.computing += news.computing / comm.size();
    totals.waiting += news.waiting / comm.size();
    totals.reading += news.reading / comm.size();
  }
  return totals;
}

int reading_threads(const Job& job, const runtime::Executor& executor) {
  const std::int64_t threads = job.config.data.threads;
  return threads > 0 ? static_cast<int>(threads) : executor.context().exec.threads();
}

/// The norm of all gradients: the last metric, where there is one.
std::optional<double> gradient_norm(const graph::Graph& graph, const std::vector<double>& values) {
  if (graph.tensors[graph.metrics.back()].name != "gradient_norm") return std::nullopt;
  return values.back();
}

/// A step that was run, or queued on an accelerator, and whose numbers the host has not looked at yet.
struct Pending {
  std::int64_t done; ///< steps, with it
  runtime::Totals totals;
  double reading_seconds; ///< in which it waited for its batch
};

/// One run of the loop: state shared by its steps. On an accelerator the host looks at a step's numbers when the next
/// one is queued, so that neither waits for the other.
class Loop {
public:
  Loop(const Job& job, runtime::Executor& executor, const LoopOptions& options)
      : job_(job),
        executor_(executor),
        comm_(executor.context().comm),
        options_(options),
        order_(order_of(job)),
        last_step_(total_steps(job)),
        root_(comm_.rank() == 0) {
    peak_memory_ = comm::max(comm_, executor.memory_bytes());
    result_.summary.steps = options.first_step;
    best_ = options.best;
    if (best_.step >= 0 && looks_for_best()) result_.summary.best = best_;
  }

  LoopResult run();

private:
  void open_files();
  void one_step(std::int64_t step, data::Loader& loader);
  void trace_if_due(std::int64_t step, bool ends);
  void settle(std::size_t most_left);
  void record(std::int64_t done, const StepTotals& totals, const std::vector<double>& values);
  void validate_if_due(std::int64_t done);
  void note_best(std::int64_t done, const Validation& v, bool regular);
  void checkpoint_if_due(std::int64_t done, bool last);
  bool looks_for_best() const { return job_.config.checkpoint.best || job_.config.train.patience > 0; }
  void note(const std::string& text) {
    if (progress_) progress_->note(text);
  }

  const Job& job_;
  runtime::Executor& executor_;
  comm::Comm& comm_;
  const LoopOptions& options_;
  data::Order order_;
  std::int64_t last_step_;
  bool root_;
  std::int64_t peak_memory_ = 0;
  std::int64_t moved_bytes_ = 0, steps_run_ = 0;
  double training_seconds_ = 0;
  std::int64_t saved_ = -1, validated_ = -1;
  Best best_;
  std::int64_t best_step_ = -1; ///< the latest step of this run that was the best so far
  std::optional<Progress> progress_;
  std::optional<MetricsFile> metrics_;
  std::optional<runtime::Trace> trace_;
  std::deque<Pending> pending_;
  Clock::time_point mark_; ///< when the step before the pending ones was settled, or the first of them begun
  LoopResult result_;
};

void Loop::open_files() {
  if (options_.run_dir.empty()) return;
  on_root(comm_, [&] {
    const std::string path = options_.run_dir + "/metrics.jsonl";
    const std::string aside = truncate_metrics(path, options_.first_step);
    if (!aside.empty() && !options_.quiet)
      say(fmt::format("{}: has lines that are no records of steps; it was kept as {}\n", path, aside));
    metrics_.emplace(path);
  });
}

void Loop::one_step(std::int64_t step, data::Loader& loader) {
  const auto begin = Clock::now();
  if (pending_.empty()) mark_ = begin;
  const data::Batch& batch = loader.next();
  const double reading_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const double read = trace_ ? trace_->now() : 0;
  if (trace_) trace_->add(runtime::Trace::Track::host, "waiting for the batch", read - reading_seconds, read);
  feed(job_.graph, executor_, batch);
  feed_hyper(job_.graph, executor_, step_scalars(job_.config.train, order_, step));
  executor_.run(train_program);
  const double ran = trace_ ? trace_->now() : 0;
  executor_.queue_metrics(train_program);
  pending_.push_back({step + 1, executor_.profile(train_program).last, reading_seconds});
  settle(executor_.context().exec.on_device() ? 1 : 0);
  if (trace_) trace_->add(runtime::Trace::Track::host, "telling the other ranks", ran, trace_->now());
}

/// Before `step`, or as the run `ends`: begins the timeline, or writes it. The first step of a run is left out, as much
/// is set up in it, unless it is the only one.
void Loop::trace_if_due(std::int64_t step, bool ends) {
  const std::int64_t first = std::min(options_.first_step + 1, last_step_ - 1);
  if (options_.traced > 0 && step == first && !ends) {
    comm_.barrier();
    executor_.set_trace(&trace_.emplace());
  }
  if (!trace_ || (!ends && step < first + options_.traced)) return;
  executor_.set_trace(nullptr);
  const std::string path = options_.run_dir + "/trace.json";
  write_trace(*trace_, path, comm_);
  trace_.reset();
  note(fmt::format("timeline of steps {} to {}: {}, to be opened in ui.perfetto.dev or chrome://tracing", first + 1,
                   step, path));
}

/// Looks at the numbers of all pending steps but the latest `most_left`.
void Loop::settle(std::size_t most_left) {
  while (pending_.size() > most_left) {
    const Pending step = pending_.front();
    pending_.pop_front();
    const std::vector<double> values = executor_.take_metrics();
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - std::exchange(mark_, now)).count();
    const StepTotals totals =
        gather(comm_, {stop_signal(), step.totals.data_bytes, step.totals.control_bytes, seconds,
                       step.totals.computing_seconds, step.totals.waiting_seconds, step.reading_seconds});
    result_.signal = totals.signal;
    record(step.done, totals, values);
  }
}

void Loop::record(std::int64_t done, const StepTotals& totals, const std::vector<double>& values) {
  const double batch = static_cast<double>(job_.config.data.batch);
  const Measures measured = measures(job_.graph, true, values, batch);
  StepRecord record{.step = done,
                    .epoch = static_cast<double>(done) * batch / static_cast<double>(order_.samples),
                    .loss = measured.loss,
                    .accuracy = measured.accuracy,
                    .more = measured.more,
                    .losses = measured.losses,
                    .learning_rate = learning_rate(job_.config.train, order_, done - 1),
                    .gradient_norm = gradient_norm(job_.graph, values),
                    .samples_per_second = batch / totals.slowest,
                    .bytes_planned = job_.plan.bytes,
                    .bytes_moved = totals.data_bytes,
                    .control_bytes = totals.control_bytes,
                    .seconds = totals.slowest,
                    .computing_seconds = totals.computing,
                    .waiting_seconds = totals.waiting,
                    .reading_seconds = totals.reading,
                    .peak_memory = peak_memory_};
  if (!std::isfinite(record.loss)) fail_for_loss(job_, comm_, done, record.loss);
  ++steps_run_;
  training_seconds_ += totals.slowest;
  moved_bytes_ += totals.data_bytes;
  result_.summary.steps = done;
  result_.summary.final_loss = record.loss;
  if (metrics_) metrics_->write(record);
  if (progress_)
    progress_->show({done, record.epoch, record.loss, record.accuracy,
                     batch * static_cast<double>(steps_run_) / training_seconds_});
}

void Loop::validate_if_due(std::int64_t done) {
  if (job_.reader->info().validation_samples == 0 || validated_ == done) return;
  const std::int64_t every = job_.config.train.validate_every;
  const bool end_of_epoch = every > 0 && epoch_of(order_, done) / every > epoch_of(order_, done - 1) / every;
  if (!end_of_epoch && done != last_step_) return;
  settle(0);
  const Validation v = validate(job_, executor_);
  if (!std::isfinite(v.loss)) fail_for_validation(job_, comm_, fmt::format("step {}", done), v.loss);
  validated_ = done;
  result_.summary.validation = v;
  note_best(done, v, end_of_epoch);
  if (metrics_) metrics_->write(done, v);
  note(fmt::format("step {}: validation loss {:.4f}{}", done, plain(v.loss), accuracy_text(v.accuracy, 2)));
}

/// A validation that is there only because the run ends is not known to a run that goes on from its checkpoint, as it
/// would not have come had it never stopped.
void Loop::note_best(std::int64_t done, const Validation& v, bool regular) {
  Best best = best_;
  if (best.take(done, v, job_.config.train.best_by)) best_step_ = done;
  if (looks_for_best()) result_.summary.best = best;
  if (!regular) return;
  best_ = best;
  result_.summary.stopped_early = out_of_patience(job_, best_);
}

void Loop::checkpoint_if_due(std::int64_t done, bool last) {
  if (options_.run_dir.empty() || job_.config.checkpoint.keep == 0 || saved_ == done) return;
  const std::int64_t every = job_.config.checkpoint.every;
  const bool best = job_.config.checkpoint.best && best_step_ == done;
  if (!last && !best && (every == 0 || done % every != 0)) return;
  settle(0);
  const std::string path = write_checkpoint(job_, executor_, options_.run_dir, done, {best_, best});
  saved_ = done;
  note(fmt::format("step {}: checkpoint {}", done, path));
}

LoopResult Loop::run() {
  open_files();
  if (root_ && !options_.quiet) progress_.emplace(options_.first_step, last_step_, job_.config.train.log_every);
  std::int64_t step = options_.first_step;
  ensure(step < last_step_, "no steps to train");
  {
    data::Loader loader(
        data::BatchSource::training(*job_.reader, job_.config.data, order_, reading_threads(job_, executor_)),
        fed_parts(job_.graph, executor_), step, job_.config.data.prefetch);
    while (step < last_step_ && result_.signal == 0 && !result_.summary.stopped_early) {
      trace_if_due(step, false);
      one_step(step, loader);
      ++step;
      if (result_.signal != 0 && step < last_step_) break;
      validate_if_due(step);
      checkpoint_if_due(step, step == last_step_ || result_.summary.stopped_early);
    }
    settle(0);
    trace_if_due(step, true);
  }
  result_.summary.stopped_early = result_.summary.stopped_early && step < last_step_;
  if (step == last_step_ || result_.summary.stopped_early) result_.signal = 0; // it came too late to stop anything
  if (result_.signal != 0) checkpoint_if_due(step, true);
  if (progress_) progress_->finish();
  Summary& summary = result_.summary;
  summary.samples_per_second =
      training_seconds_ > 0 ? static_cast<double>(steps_run_ * job_.config.data.batch) / training_seconds_ : 0;
  summary.bytes_planned_per_step = job_.plan.bytes;
  summary.bytes_moved_per_step = steps_run_ > 0 ? moved_bytes_ / steps_run_ : 0;
  summary.peak_memory = peak_memory_;
  summary.ranks = comm_.size();
  summary.strategy = job_.plan.strategy;
  summary.microbatches = job_.graph.microbatches;
  summary.recompute = graph::to_string(job_.graph.recompute);
  return result_;
}

} // namespace

data::Order order_of(const Job& job) {
  return {job.reader->info().train_samples, job.config.data.batch, job.config.train.seed, job.config.data.shuffle};
}

std::int64_t total_steps(const Job& job) {
  return total_steps(job.config.train, order_of(job));
}

std::string advice(const Job& job) {
  const std::int64_t warmup = warmup_steps(job.config.train.schedule, order_of(job)), steps = total_steps(job);
  if (warmup < steps || warmup == 0) return "";
  return fmt::format("advice: the warm-up takes {} steps, all {} of the run: the learning rate never gets to "
                     "train.optimizer.lr. Set train.schedule.warmup_steps lower\n",
                     warmup, steps);
}

bool out_of_patience(const Job& job, const Best& best) {
  const std::int64_t patience = job.config.train.patience;
  return patience > 0 && best.since >= patience;
}

Validation validate(const Job& job, runtime::Executor& executor, int program) {
  const auto source = data::BatchSource::validation(*job.reader, job.config.data, job.config.data.batch,
                                                    reading_threads(job, executor));
  const std::vector<data::Part> parts = fed_parts(job.graph, executor);
  Validation sum;
  data::Batch batch;
  for (std::int64_t step = 0; step < source.steps(); ++step) {
    source.read(step, parts, batch);
    feed(job.graph, executor, batch);
    executor.run(program);
    const std::vector<double> values = executor.metrics(program);
    const Measures part =
        measures(job.graph, false, values, static_cast<double>(job.reader->info().validation_samples));
    sum.loss += part.loss;
    sum.accuracy += part.accuracy;
    sum.more.resize(part.more.size());
    for (std::size_t i = 0; i < part.more.size(); ++i) {
      sum.more[i].first = part.more[i].first;
      sum.more[i].second += part.more[i].second;
    }
  }
  return sum;
}

LoopResult train(const Job& job, runtime::Executor& executor, const LoopOptions& options) {
  return Loop(job, executor, options).run();
}

} // namespace soybean::train
