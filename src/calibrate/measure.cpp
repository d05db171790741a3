#include "calibrate/measure.hpp"

#include "base/error.hpp"
#include "calibrate/networks.hpp"
#include "calibrate/timing.hpp"
#include "comm/mpi_session.hpp"
#include "device/arena.hpp"
#include "ops/operator.hpp"
#include "plan/planner.hpp"
#include "program/program.hpp"
#include "runtime/executor.hpp"
#include "runtime/host.hpp"
#include "runtime/initialise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>

namespace soybean::calibrate {
namespace {

/// Seconds of one call: the median of a few samples, each of as many calls as take a few milliseconds.
template<class Call>
double seconds_of(const device::Exec& exec, const Call& call) {
  constexpr double sample_seconds = 0.003;
  constexpr std::size_t samples = 5;
  call(); // sets up
  exec.fence();
  std::int64_t calls = 1;
  std::vector<double> taken;
  while (taken.size() < samples) {
    const double begin = now();
    for (std::int64_t i = 0; i < calls; ++i) call();
    exec.fence();
    const double seconds = now() - begin;
    if (seconds < sample_seconds && calls < 1 << 16)
      calls *= 2;
    else
      taken.push_back(seconds / static_cast<double>(calls));
  }
  return median(std::move(taken));
}

/// One network on this rank alone, its inputs filled.
class Bench {
public:
  Bench(const graph::Graph& graph, const device::Exec& exec)
      : graph_(graph),
        self_(comm::make_self_comm()),
        executor_(graph, {program_of(graph)}, {exec, *self_, {}, 0, false}) {
    runtime::initialise_parameters(graph, executor_, 1);
    for (const runtime::Block& block : executor_.fed()) fill(block);
    executor_.run(0);
  }

  runtime::Executor& executor() { return executor_; }

  /// Seconds of every instruction. On the host in the course of whole steps, so that each finds the caches as the
  /// others left them; on an accelerator, where kernels are queued, one by one.
  std::vector<double> instruction_seconds(const device::Exec& exec) {
    return exec.on_device() ? one_by_one(exec) : in_steps();
  }

private:
  std::vector<double> one_by_one(const device::Exec& exec) {
    const std::vector<program::Instruction>& all = executor_.program(0).instructions;
    std::vector<double> seconds(all.size(), 0);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].kind == program::Kind::compute) seconds[i] = seconds_of(exec, [&] { executor_.compute(0, i); });
    return seconds;
  }

  std::vector<double> in_steps() {
    constexpr double enough_seconds = 0.5;
    constexpr int warm_up = 2, least = 7, most = 200;
    const std::vector<runtime::Work>& work = executor_.profile(0).instructions;
    std::vector<std::vector<double>> taken(work.size());
    const double begin = now();
    for (int step = 0; step < warm_up + most && (step < warm_up + least || now() - begin < enough_seconds); ++step) {
      const std::vector<runtime::Work> before = work;
      executor_.run(0);
      if (step < warm_up) continue;
      for (std::size_t i = 0; i < work.size(); ++i)
        taken[i].push_back(work[i].computing_seconds - before[i].computing_seconds);
    }
    std::vector<double> seconds;
    seconds.reserve(taken.size());
    for (std::vector<double>& values : taken) seconds.push_back(median(std::move(values)));
    return seconds;
  }

  static program::Program program_of(const graph::Graph& graph) {
    program::Program program = program::lower(graph, plan::make_plan(graph, {}, {}), program::Mode::train);
    program::run_passes(graph, program, {"fuse"}); // each node a kernel of its own
    return program;
  }

  /// Numbers in [-1, 1) for inputs, classes of 0, equal weights, a rate of 0: the weights stay as they are.
  void fill(const runtime::Block& block) {
    const graph::Tensor& tensor = graph_.tensors[block.tensor];
    const std::int64_t count = volume(block.view.box);
    std::vector<double> values(static_cast<std::size_t>(count), 0);
    if (tensor.role == graph::Role::input)
      for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<double>((i * 7919) % 2000) / 1000 - 1;
    if (tensor.role == graph::Role::sample_weight)
      std::fill(values.begin(), values.end(), 1 / static_cast<double>(tensor.shape[0]));
    if (tensor.role == graph::Role::hyper && count > 1) std::fill(values.begin() + 1, values.end(), 1.0);
    if (tensor.dtype == DType::i32) return feed<std::int32_t>(block, values);
    if (tensor.dtype == DType::f64) return feed<double>(block, values);
    feed<float>(block, values);
  }

  template<class T>
  void feed(const runtime::Block& block, const std::vector<double>& values) {
    const std::vector<T> typed(values.begin(), values.end());
    executor_.feed(block, typed.data());
  }

  const graph::Graph& graph_;
  std::unique_ptr<comm::Comm> self_;
  runtime::Executor executor_;
};

constexpr std::int64_t large_count = 4 << 20; // floats

/// Seconds of a collective: from a common start to its end on the last rank, the median of a few.
double collective_seconds(const device::Exec& exec, comm::Comm& comm, const comm::Collective& collective) {
  constexpr int repeats = 9;
  std::vector<double> taken;
  for (int i = 0; i < repeats; ++i) {
    comm.barrier();
    const double begin = now();
    comm.wait(comm.start(collective, exec));
    exec.fence();
    taken.push_back(comm::max(comm, now() - begin));
  }
  return median(std::move(taken));
}

/// An all-reduce of floats, all groups at the same time, with its memory.
class AllReduce {
public:
  AllReduce(const device::Exec& exec, comm::Comm& comm, std::vector<int> group, std::int64_t count)
      : data_(exec, 4 * count) {
    collective_.kind = comm::Kind::all_reduce;
    collective_.group = std::move(group);
    collective_.send = collective_.recv = data_.data();
    collective_.counts = {count};
    collective_.label = "calibration";
    scratch_ = device::Arena(exec, std::max<std::int64_t>(64, comm.scratch_bytes(collective_)));
    collective_.scratch = scratch_.data();
    comm.prepare({collective_.group});
  }
  const comm::Collective& collective() const { return collective_; }

private:
  device::Arena data_, scratch_;
  comm::Collective collective_;
};

/// Seconds of a collective, each on the heels of the one before.
double seconds_in_turn(const device::Exec& exec, comm::Comm& comm, const comm::Collective& collective) {
  constexpr int repeats = 9, calls = 200;
  std::vector<double> taken;
  for (int i = 0; i < repeats; ++i) {
    comm.barrier();
    const double begin = now();
    for (int call = 0; call < calls; ++call) comm.wait(comm.start(collective, exec));
    taken.push_back(comm::max(comm, now() - begin) / calls);
  }
  return median(std::move(taken));
}

/// A core for pair number `pair` of a host, one of those that its first rank may run on.
runtime::Cores shared_core(comm::Comm& comm, const runtime::Cores& mine, int first, int pair) {
  std::vector<int> list;
  for (int core = 0; core < runtime::max_cores; ++core)
    if (mine[static_cast<std::size_t>(core)]) list.push_back(core);
  const int wanted = list[static_cast<std::size_t>(pair) % list.size()];
  const std::vector<std::byte> all = comm.gather_all(std::as_bytes(std::span(&wanted, 1)));
  int chosen = 0;
  std::memcpy(&chosen, all.data() + static_cast<std::size_t>(first) * sizeof(int), sizeof(int));
  return runtime::Cores().set(static_cast<std::size_t>(chosen));
}

struct GroupSpeed {
  double latency, bytes_per_second; ///< of a round; that each rank sends
};

GroupSpeed measure_group(const device::Exec& exec, comm::Comm& comm, const std::vector<int>& group) {
  const auto members = static_cast<double>(group.size());
  const AllReduce small(exec, comm, group, 2), large(exec, comm, group, large_count);
  const double rounds = 2 * static_cast<double>(std::bit_width(group.size() - 1));
  const double latency = seconds_in_turn(exec, comm, small.collective()) / rounds;
  const double seconds = collective_seconds(exec, comm, large.collective());
  const double sent = 2 * (members - 1) / members * 4 * large_count;
  return {latency, sent / std::max(seconds - 2 * (members - 1) * latency, 0.5 * seconds)};
}

} // namespace

std::vector<Sample> measure_kernels(const graph::Graph& graph, const device::Exec& exec, comm::Comm& comm,
                                    std::string_view only) {
  Bench bench(graph, exec);
  comm.barrier();
  const std::vector<double> seconds = bench.instruction_seconds(exec);
  const program::Program& program = bench.executor().program(0);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const program::Instruction& instruction = program.instructions[i];
    if (instruction.kind != program::Kind::compute) continue;
    const graph::Node& node = graph.nodes[instruction.node];
    if (!only.empty() && node.op != only) continue;
    const machine::Amount amount = machine::amount(graph, node, ops::form(graph, node), {}, {});
    if (amount.flops == 0 && program.buffers[instruction.outputs[0]].alias == instruction.inputs[0]) continue;
    samples.push_back({node.op, amount, comm::sum(comm, seconds[i]) / comm.size()});
  }
  return samples;
}

std::vector<machine::Link> measure_links(const device::Exec& exec, comm::Comm& comm,
                                         const std::vector<std::string>& hosts) {
  const std::vector<int> on_hosts = comm::ranks_per_host(hosts);
  const int each = on_hosts.front();
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    if (on_hosts[rank / each >= on_hosts.size() ? 0 : rank / each] != each || hosts[rank] != hosts[rank / each * each])
      fail("--calibrate: ranks, got {} on {} hosts in mixed order or unequal numbers expected equally many on each, "
           "host "
           "by host. start it with mpirun --map-by ppr:N:node --rank-by slot",
           hosts.size(), on_hosts.size());
  std::vector<machine::Link> links;
  const int mine = comm.rank() / each;
  if (each > 1) {
    std::vector<int> group(static_cast<std::size_t>(each));
    std::iota(group.begin(), group.end(), mine * each);
    const GroupSpeed speed = measure_group(exec, comm, group);
    const bool bus = !exec.on_device(); // the ranks' messages share the host's memory
    links.push_back({.name = bus ? "shared memory" : "devices of a host",
                     .ranks = on_hosts.size() > 1 ? each : 0,
                     .latency = speed.latency,
                     .bandwidth = speed.bytes_per_second * (bus ? each : 1),
                     .per = bus ? machine::Per::all : machine::Per::rank});
  }
  if (on_hosts.size() > 1) {
    std::vector<int> group;
    group.reserve(on_hosts.size());
    for (std::size_t host = 0; host < on_hosts.size(); ++host)
      group.push_back(static_cast<int>(host) * each + comm.rank() % each);
    const GroupSpeed speed = measure_group(exec, comm, group);
    links.push_back({.name = "network",
                     .ranks = 0,
                     .latency = speed.latency,
                     .bandwidth = speed.bytes_per_second * each,
                     .per = machine::Per::group});
  }
  return links;
}

double measure_turn(const device::Exec& exec, comm::Comm& comm, const std::vector<std::string>& hosts) {
  const int each = comm::ranks_per_host(hosts).front();
  if (exec.on_device() || each < 2) return 0;
  const int first = comm.rank() - comm.rank() % each % 2, partner = first + 1;
  const bool paired = partner < comm.size() && partner / each == first / each;
  const AllReduce small(exec, comm, paired ? std::vector<int>{first, partner} : std::vector<int>{comm.rank()}, 2);
  const double apart = seconds_in_turn(exec, comm, small.collective());
  const runtime::Cores mine = runtime::bound_cores();
  runtime::bind_to(shared_core(comm, mine, first, comm.rank() % each / 2));
  const double sharing = seconds_in_turn(exec, comm, small.collective());
  runtime::bind_to(mine);
  return std::max(0.0, sharing - apart); // there with one rank's term, back with the sum
}

double measure_overlap(const device::Exec& exec, comm::Comm& comm) {
  if (comm.size() == 1) return 0;
  std::vector<int> everyone(static_cast<std::size_t>(comm.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  const AllReduce all(exec, comm, everyone, large_count);
  const double alone = collective_seconds(exec, comm, all.collective());
  const graph::Graph graph = network({4, 16, 16, 64}, DType::f32);
  Bench bench(graph, exec);
  const double step = comm::max(comm, seconds_of(exec, [&] { bench.executor().run(0); }));
  const int steps = std::max(1, static_cast<int>(std::lround(alone / step))); // about as long as the all-reduce
  const program::Program& program = bench.executor().program(0);
  const auto compute = [&](bool poll) {
    for (int s = 0; s < steps; ++s)
      for (std::size_t i = 0; i < program.instructions.size(); ++i) {
        if (program.instructions[i].kind != program::Kind::compute) continue;
        bench.executor().compute(0, i);
        if (poll) comm.poll();
      }
    exec.fence();
  };
  std::vector<double> apart, together;
  constexpr int repeats = 5;
  for (int i = 0; i < repeats; ++i) {
    comm.barrier();
    double begin = now();
    compute(false);
    apart.push_back(comm::max(comm, now() - begin));
    comm.barrier();
    begin = now();
    const comm::Token token = comm.start(all.collective(), exec);
    compute(true);
    comm.wait(token);
    exec.fence();
    together.push_back(comm::max(comm, now() - begin));
  }
  const double kernels = median(std::move(apart)), both = median(std::move(together));
  return std::clamp((alone + kernels - both) / std::min(alone, kernels), 0.0, 1.0);
}

} // namespace soybean::calibrate
