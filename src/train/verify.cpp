#include "train/verify.hpp"

#include "base/error.hpp"
#include "device/memory.hpp"
#include "device/pack.hpp"
#include "runtime/executor.hpp"
#include "runtime/initialise.hpp"
#include "tiling/tiling.hpp"
#include "train/feed.hpp"
#include "train/loop.hpp"
#include "train/progress.hpp"
#include "train/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace soybean::train {

namespace {

using device::TensorView;
using tiling::Kind;
using tiling::Mesh;
using tiling::Tiling;

constexpr double single_bound = 1e-5;
constexpr double double_bound = 1e-9;
constexpr std::int64_t most_steps = 20;
constexpr double least_share = 1e-2;  // of its terms' norm, in which a sum over a batch is compared at least
constexpr double least_weight = 1e-6; // per element, the same for weights and state

/// Whether this rank is the one at coordinate 0 of every cut of that kind.
bool is_first(const Mesh& mesh, int rank, const Tiling& tiling, Kind kind) {
  for (std::size_t cut = 0; cut < tiling.size(); ++cut)
    if (tiling[cut].kind == kind && tiling::coordinate(mesh, rank, static_cast<int>(cut)) != 0) return false;
  return true;
}

std::vector<double> to_double(const device::Exec& exec, const TensorView& view) {
  const std::size_t n = static_cast<std::size_t>(view.size());
  std::vector<std::byte> packed(n * static_cast<std::size_t>(size_of(view.dtype)));
  device::download(exec, view, view.box, packed.data());
  std::vector<double> values(n);
  auto convert = [&](auto element) {
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(&element, packed.data() + i * sizeof(element), sizeof(element));
      values[i] = static_cast<double>(element);
    }
  };
  if (view.dtype == DType::f32)
    convert(float{});
  else if (view.dtype == DType::f64)
    convert(double{});
  else
    convert(std::int32_t{});
  return values;
}

/// The whole tensor on every rank, in logical order: blocks put in place, partial terms added up.
std::vector<double> gather_whole(const runtime::Context& context, const TensorView& block, const Tiling& tiling) {
  const device::Exec host(context.exec.threads());
  std::vector<double> whole_values(static_cast<std::size_t>(volume(block.global)));
  TensorView target{whole_values.data(), DType::f64, whole(block.global), block.global, 1};
  if (is_first(context.mesh, context.rank, tiling, Kind::replicate)) {
    const std::vector<double> mine = to_double(context.exec, block);
    device::unpack(host, mine.data(), target, block.box, device::Order::logical);
  }
  if (context.comm.size() == 1) return whole_values;
  comm::Collective sum{.kind = comm::Kind::all_reduce, .dtype = DType::f64};
  for (int r = 0; r < context.comm.size(); ++r) sum.group.push_back(r);
  sum.counts = {static_cast<std::int64_t>(whole_values.size())};
  sum.send = sum.recv = whole_values.data();
  sum.label = "verification";
  sum.control = true;
  context.comm.wait(context.comm.start(sum, host));
  return whole_values;
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// ‖got − expected‖ over ‖expected‖, or over `least`, if that is more: what is zero but for rounding, as the gradient
/// of a bias before a batch norm, has no digits to agree in.
double relative_error(const std::vector<double>& got, const std::vector<double>& expected, double least) {
  double difference = 0;
  for (std::size_t i = 0; i < got.size(); ++i) difference += (got[i] - expected[i]) * (got[i] - expected[i]);
  const double norm = std::max(norm_of(expected), least);
  return norm > 0 ? std::sqrt(difference) / norm : std::sqrt(difference);
}

/// A job in two forms: this rank's part of the plan, and all of it on one rank.
struct Pair {
  std::unique_ptr<comm::Comm> self = comm::make_self_comm();
  std::unique_ptr<runtime::Executor> serial, parallel; ///< the latter goes first: after an error it may have to give up
};

Pair make_pair(const Job& job, comm::Comm& comm, const device::Exec& exec, bool serial_here) {
  Pair pair;
  pair.parallel = std::make_unique<runtime::Executor>(job.graph, job.programs,
                                                      runtime::Context{exec, comm, job.plan.mesh, comm.rank()});
  runtime::initialise_parameters(job.graph, *pair.parallel, job.config.train.seed);
  if (!serial_here) return pair;
  pair.serial = std::make_unique<runtime::Executor>(job.graph, serial_programs(job.graph),
                                                    runtime::Context{exec, *pair.self, Mesh{}, 0});
  runtime::initialise_parameters(job.graph, *pair.serial, job.config.train.seed);
  return pair;
}

void feed_step(const Job& job, runtime::Executor& executor, std::int64_t step) {
  const data::Order order = order_of(job);
  const auto source = data::BatchSource::training(*job.reader, job.config.data, order);
  data::Batch batch;
  source.read(step, fed_parts(job.graph, executor), batch);
  feed(job.graph, executor, batch);
  feed_hyper(job.graph, executor, step_scalars(job.config.train, order, step));
}

/// Gives a block of the parallel program the serial values; of terms still to be added up, the first gets it all.
void give(const runtime::Context& context, const TensorView& from, const TensorView& to, const Tiling& tiling) {
  if (is_first(context.mesh, context.rank, tiling, Kind::partial))
    device::copy_box(context.exec, from, to, to.box);
  else
    device::zero(context.exec, to.data, to.size() * size_of(to.dtype));
}

/// Computes a node serially after its operands from the `skip`th on have been given to the parallel instruction, as its
/// operands from `operand` on. Returns how many those were.
std::size_t compute_serially(const Pair& pair, std::size_t serial, std::size_t skip, const program::Instruction& many,
                             std::size_t operand) {
  const program::Instruction& one = pair.serial->program(train_program).instructions[serial];
  const program::Program& parallel = pair.parallel->program(train_program);
  for (std::size_t k = skip; k < one.inputs.size(); ++k) {
    const program::BufferId to = many.inputs.at(operand + k - skip);
    give(pair.parallel->context(), pair.serial->view(train_program, one.inputs[k]),
         pair.parallel->view(train_program, to), parallel.buffers[to].tiling);
  }
  pair.serial->compute(train_program, serial);
  return one.inputs.size() - skip;
}

/// The least norm in which results of an instruction of the serial program, about to run, are compared: gradients by
/// one value per channel are sums in which nearly everything may cancel.
double least_norm(const graph::Graph& graph, const Pair& pair, const program::Instruction& one) {
  const graph::Node& node = graph.nodes[one.node];
  if (node.phase != graph::Phase::backward || graph.tensors[node.outputs[0]].shape.size() != 1) return 0;
  return least_share * norm_of(to_double(pair.serial->context().exec, pair.serial->view(train_program, one.inputs[0])));
}

/// The serial program computes every node by itself; the parallel one's instructions may join several.
std::vector<Deviation> compare_operators(const Job& job, const Pair& pair) {
  const program::Program& serial = pair.serial->program(train_program);
  const program::Program& parallel = pair.parallel->program(train_program);
  std::map<graph::NodeId, std::size_t> instruction_of;
  for (std::size_t i = 0; i < serial.instructions.size(); ++i)
    if (serial.instructions[i].kind == program::Kind::compute) instruction_of[serial.instructions[i].node] = i;

  std::vector<Deviation> deviations;
  for (std::size_t p = 0; p < parallel.instructions.size(); ++p) {
    const program::Instruction& many = parallel.instructions[p];
    if (many.kind != program::Kind::compute) continue;
    std::size_t last = instruction_of.at(many.node);
    const double least = least_norm(job.graph, pair, serial.instructions[last]);
    std::size_t given = compute_serially(pair, last, 0, many, 0);
    for (graph::NodeId n : many.epilogue) {
      last = instruction_of.at(n);
      given += compute_serially(pair, last, 1, many, given);
    }
    pair.parallel->compute(train_program, p);
    const program::Instruction& one = serial.instructions[last];
    for (std::size_t k = 0; k < one.outputs.size(); ++k) {
      const TensorView block = pair.parallel->view(train_program, many.outputs[k]);
      const auto got = gather_whole(pair.parallel->context(), block, parallel.buffers[many.outputs[k]].tiling);
      const auto expected = to_double(pair.serial->context().exec, pair.serial->view(train_program, one.outputs[k]));
      const std::string& name = job.graph.tensors[job.graph.nodes[one.node].outputs[k]].name;
      deviations.push_back({name, relative_error(got, expected, least), single_bound});
    }
  }
  return deviations;
}

void verify_single(const Job& job, comm::Comm& comm, const device::Exec& exec, VerifyReport& report) {
  Pair pair = make_pair(job, comm, exec, true);
  feed_step(job, *pair.serial, 0);
  feed_step(job, *pair.parallel, 0);
  report.operators = compare_operators(job, pair);

  // The comparison has updated weights and left operands anywhere: start afresh.
  for (runtime::Executor* executor : {pair.serial.get(), pair.parallel.get()}) {
    runtime::initialise_parameters(job.graph, *executor, job.config.train.seed);
    feed_step(job, *executor, 0);
    executor->run(train_program);
  }
  const double got = pair.parallel->metrics(train_program)[0], expected = pair.serial->metrics(train_program)[0];
  report.step_loss = {"loss", std::abs(got - expected) / std::abs(expected), single_bound};
}

/// The root rank's serial values on every rank.
void share(comm::Comm& comm, std::vector<double>& values) {
  comm.broadcast(values.data(), static_cast<std::int64_t>(values.size() * sizeof(double)), 0);
}

void verify_double(const Job& job, comm::Comm& comm, const device::Exec& exec, VerifyReport& report) {
  const bool root = comm.rank() == 0;
  Pair pair = make_pair(job, comm, exec, root);
  report.steps = std::min(most_steps, total_steps(job));
  report.losses = {"losses", 0, double_bound};
  std::vector<double> expected(static_cast<std::size_t>(report.steps)), got(expected.size());
  for (std::int64_t step = 0; step < report.steps; ++step) {
    feed_step(job, *pair.parallel, step);
    pair.parallel->run(train_program);
    got[step] = pair.parallel->metrics(train_program)[0];
    if (!root) continue;
    feed_step(job, *pair.serial, step);
    pair.serial->run(train_program);
    expected[step] = pair.serial->metrics(train_program)[0];
  }
  share(comm, expected);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - expected[i]) / std::abs(expected[i]);
    if (!(error <= report.losses.error)) report.losses.error = error;
  }
  for (const runtime::Block& block : pair.parallel->persistent()) {
    const std::vector<double> mine = gather_whole(pair.parallel->context(), block.view, block.tiling);
    std::vector<double> serial(mine.size());
    if (root) serial = to_double(exec, pair.serial->persistent(block.tensor).view);
    share(comm, serial);
    report.weights.push_back({job.graph.tensors[block.tensor].name,
                              relative_error(mine, serial, least_weight * std::sqrt(static_cast<double>(mine.size()))),
                              double_bound});
  }
}

std::string table(const std::vector<Deviation>& rows) {
  std::string text;
  for (const Deviation& row : rows)
    text += fmt::format("  {:<44} {:9.2e}  {}\n", row.name, plain(row.error), row.passed() ? "ok" : "TOO LARGE");
  return text;
}

} // namespace

bool VerifyReport::passed() const {
  auto all = [](const std::vector<Deviation>& rows) {
    return std::all_of(rows.begin(), rows.end(), [](const Deviation& d) { return d.passed(); });
  };
  return all(operators) && all(weights) && step_loss.passed() && losses.passed();
}

VerifyReport verify(const Job& single, const Job& twice, comm::Comm& comm, const device::Exec& exec) {
  VerifyReport report;
  verify_single(single, comm, exec, report);
  const device::Exec host(exec.threads()); // where the fp64 kernels are
  verify_double(twice, comm, host, report);
  return report;
}

std::string to_string(const VerifyReport& report) {
  std::string text =
      fmt::format("fp32, every operator given the serial operands: error of its result over the result's "
                  "norm (at most {:g})\n",
                  single_bound);
  text += table(report.operators);
  text += fmt::format("fp32, loss of one whole step (at most {:g})\n", single_bound) + table({report.step_loss});
  text += fmt::format("fp64, {} steps: losses, then weights and state after them (at most {:g})\n", report.steps,
                      double_bound);
  text += table({report.losses}) + table(report.weights);
  return text + (report.passed() ? "verify: passed\n" : "verify: FAILED\n");
}

} // namespace soybean::train
