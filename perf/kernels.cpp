// soybean_kernels: times every kernel of a training step on one rank, on what the program was built for. One line per
// instruction: milliseconds (the median of repeated runs), and the rates that follow from the flops of its definition
// and the bytes of its operands, each counted once. Needs no data. See perf/README.md.
#include "app/command_line.hpp"
#include "comm/comm.hpp"
#include "comm/mpi_session.hpp"
#include "ops/operator.hpp"
#include "runtime/binding.hpp"
#include "runtime/executor.hpp"
#include "runtime/initialise.hpp"
#include "train/feed.hpp"
#include "train/job.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace soybean;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds of one call of work(): the median of `repeats` samples, each of as many calls as take 10 ms.
template<class Work>
double seconds_of(const device::Exec& exec, int repeats, const Work& work) {
  constexpr double sample_seconds = 0.01;
  work(); // sets up
  exec.fence();
  std::int64_t calls = 1;
  std::vector<double> samples;
  while (static_cast<int>(samples.size()) < repeats) {
    const double begin = now();
    for (std::int64_t call = 0; call < calls; ++call) work();
    exec.fence();
    const double seconds = now() - begin;
    if (seconds < sample_seconds && calls < 1 << 20)
      calls *= 2;
    else
      samples.push_back(seconds / static_cast<double>(calls));
  }
  std::nth_element(samples.begin(), samples.begin() + repeats / 2, samples.end());
  return samples[static_cast<std::size_t>(repeats / 2)];
}

struct Line {
  std::string op, name;
  double seconds = 0, flops = 0, bytes = 0;
};

std::vector<Line> time_kernels(const train::Job& job, runtime::Executor& executor, int repeats) {
  std::vector<Line> lines;
  const program::Program& program = executor.program(train::train_program);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const program::Instruction& instruction = program.instructions[i];
    if (instruction.kind != program::Kind::compute) continue;
    const graph::Node& node = job.graph.nodes[instruction.node];
    Line line{
        .op = program::operators(job.graph, instruction), .name = node.name, .flops = ops::flops(job.graph, node)};
    for (const graph::NodeId n : instruction.epilogue) line.flops += ops::flops(job.graph, job.graph.nodes[n]);
    for (const auto* buffers : {&instruction.inputs, &instruction.outputs})
      for (const program::BufferId b : *buffers) {
        const device::TensorView view = executor.view(train::train_program, b);
        line.bytes += static_cast<double>(view.size() * size_of(view.dtype));
      }
    line.seconds = seconds_of(executor.context().exec, repeats, [&] { executor.compute(train::train_program, i); });
    lines.push_back(line);
  }
  return lines;
}

double rate(double amount, double seconds) {
  return seconds > 0 ? amount / seconds / 1e9 : 0;
}

void print_table(const std::vector<Line>& lines, double step_seconds) {
  fmt::print("{:<28} {:<32} {:>10} {:>10} {:>10}\n", "operator", "layer", "ms", "GFLOP/s", "GB/s");
  double sum = 0;
  for (const Line& line : lines) {
    fmt::print("{:<28} {:<32} {:>10.4f} {:>10.1f} {:>10.1f}\n", line.op, line.name, 1e3 * line.seconds,
               rate(line.flops, line.seconds), rate(line.bytes, line.seconds));
    sum += line.seconds;
  }
  fmt::print("sum of kernels {:.3f} ms, whole step {:.3f} ms\n", 1e3 * sum, 1e3 * step_seconds);
}

void print_json(const train::Job& job, const std::vector<Line>& lines, double step_seconds) {
  nlohmann::ordered_json root{{"model", job.graph.name},
                              {"batch", job.config.data.batch},
                              {"step_seconds", step_seconds},
                              {"kernels", nlohmann::ordered_json::array()}};
  for (const Line& line : lines)
    root["kernels"].push_back({{"op", line.op},
                               {"layer", line.name},
                               {"seconds", line.seconds},
                               {"flops", line.flops},
                               {"bytes", line.bytes}});
  fmt::print("{}\n", root.dump());
}

int run(int argc, char** argv, const comm::MpiSession& mpi) {
  CLI::App app{"Times every kernel of a model's training step on one rank."};
  app::Common common;
  int repeats = 5;
  app::add_common(app, common);
  app.add_option("--repeats", repeats, "samples per kernel, of which the median is taken")->check(CLI::Range(1, 1000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fail("{}. soybean_kernels --help lists the options", error.what());
  }
  app::finish(common);
  if (mpi.size() != 1) fail("soybean_kernels: got {} ranks expected one. start it without mpirun", mpi.size());
  const std::unique_ptr<comm::Comm> comm = comm::make_self_comm();
  const train::Job job = train::make_job({common.model, common.overrides}, *comm, {1});
  const config::TrainOptions& options = job.config.train;
  const int device = runtime::choose_device(
      *comm, {.device = job.config.run.device, .precision = options.precision, .tf32 = options.tf32});
  const device::Exec exec(runtime::thread_count(static_cast<int>(job.config.run.threads), *comm), device,
                          options.tf32 ? device::Math::tf32 : device::Math::fp32);
  runtime::Executor executor(job.graph, job.programs, {exec, *comm, job.plan.mesh, 0, job.config.run.record_steps});
  runtime::initialise_parameters(job.graph, executor, options.seed);
  data::Batch batch;
  data::BatchSource::training(*job.reader, job.config.data,
                              {job.reader->info().train_samples, job.config.data.batch, options.seed, true})
      .read(0, train::fed_parts(job.graph, executor), batch);
  train::feed(job.graph, executor, batch);
  train::feed_hyper(job.graph, executor, {0, 0, 1, 1}); // repeated updates must not make the weights grow
  for (int step = 0; step < 3; ++step) executor.run(train::train_program);
  const double step_seconds = seconds_of(exec, repeats, [&] { executor.run(train::train_program); });
  const std::vector<Line> lines = time_kernels(job, executor, repeats);
  if (common.json)
    print_json(job, lines, step_seconds);
  else
    print_table(lines, step_seconds);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  comm::MpiSession mpi(&argc, &argv);
  try {
    return run(argc, argv, mpi);
  } catch (const Error& error) {
    if (mpi.rank() == 0) std::fprintf(stderr, "soybean_kernels: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soybean_kernels: internal error: %s\n", error.what());
    return static_cast<int>(ExitCode::failed);
  }
}
