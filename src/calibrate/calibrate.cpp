#include "calibrate/calibrate.hpp"

#include "calibrate/fit.hpp"
#include "calibrate/measure.hpp"
#include "calibrate/measure_batch.hpp"
#include "calibrate/networks.hpp"
#include "comm/mpi_session.hpp"
#include "device/devices.hpp"
#include "runtime/host.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace soybean::calibrate {
namespace {

using machine::Precision;

constexpr NetworkSize tiny{2, 8, 2, 8}, narrow{8, 16, 8, 32}, small{16, 16, 16, 128}, middle{16, 32, 32, 512},
    large{8, 56, 64, 1024};

std::vector<Sample> measure_networks(const device::Exec& exec, comm::Comm& comm, DType precision,
                                     const std::vector<NetworkSize>& sizes, std::int64_t dense_width) {
  std::vector<Sample> samples;
  const auto add = [&](const graph::Graph& graph) {
    const std::vector<Sample> more = measure_kernels(graph, exec, comm);
    samples.insert(samples.end(), more.begin(), more.end());
  };
  for (const NetworkSize& size : sizes) add(network(size, precision));
  for (const char* optimizer : {"adam", "rmsprop", "lars", "lamb"})
    add(optimizer_network(optimizer, dense_width / 2, precision));
  for (const std::int64_t width : {dense_width / 8, dense_width / 4, dense_width})
    add(dense_network(std::max(width / 4, std::min<std::int64_t>(width, 64)), width, precision));
  return samples;
}

std::vector<Sample> sweep_memory(const device::Exec& exec, comm::Comm& comm) {
  std::vector<Sample> sweep;
  for (std::int64_t rows = 8; rows <= 16384; rows *= 2) {
    const std::vector<Sample> one = measure_kernels(relu_network(rows), exec, comm, "relu");
    sweep.insert(sweep.end(), one.begin(), one.end());
  }
  return sweep;
}

/// That ranks may run on.
std::int64_t cores_of_host(const device::Exec& exec, comm::Comm& comm, int on_host) {
  const auto cores = static_cast<std::int64_t>(runtime::bound_cores().count());
  return std::max<std::int64_t>(std::int64_t{on_host} * exec.threads(), comm::max(comm, cores));
}

std::int64_t memory_of_rank(const device::Exec& exec, comm::Comm& comm, int on_host) {
  const std::int64_t mine =
      exec.on_device() ? device::device_facts(exec.device()).free : runtime::free_memory() / on_host;
  return -comm::max(comm, -mine);
}

constexpr double guessed_turn = 5e-6;

/// What one rank alone can not measure, in terms of its memory: a message is written and read.
machine::Link guessed_link(const machine::Processor& processor) {
  return {.name = "shared memory",
          .ranks = 0,
          .latency = 2e-6,
          .bandwidth = processor.memory_bandwidth / 4,
          .per = machine::Per::all};
}

} // namespace

Calibration calibrate(const device::Exec& exec, comm::Comm& comm, const std::vector<std::string>& hosts) {
  const std::vector<int> on_hosts = comm::ranks_per_host(hosts);
  const int each = on_hosts.front();
  Calibration result;
  machine::Machine& machine = result.machine;
  machine.links = measure_links(exec, comm, hosts);
  machine.overlap = measure_overlap(exec, comm);
  const std::vector<Sample> kernels =
      measure_networks(exec, comm, DType::f32, {tiny, narrow, small, middle, large}, 1024);
  const Precision precision = exec.math() == device::Math::tf32 ? Precision::tf32 : Precision::fp32;
  machine.processor = fit_processor(kernels, sweep_memory(exec, comm), precision);
  if (!exec.on_device()) {
    const std::vector<Sample> twice = measure_networks(exec, comm, DType::f64, {tiny, small}, 128);
    machine.rates(Precision::fp64) = fit_rates(machine.processor, twice);
    const std::vector<BatchSample> batches = measure_batches(exec, comm);
    machine.batch = of_host(fit_batch(batches.front(), batches.back()), each);
    machine.processor = of_host(std::move(machine.processor), each);
    machine.processor.cores = cores_of_host(exec, comm, each);
    machine.processor.turn = each > 1 ? measure_turn(exec, comm, hosts) : guessed_turn;
  }
  machine.memory = memory_of_rank(exec, comm, each);
  if (on_hosts.size() > 1) machine.ranks_per_host = each;
  machine.name =
      fmt::format("{}, {} rank{} of {}", hosts.front(), comm.size(), comm.size() == 1 ? "" : "s",
                  exec.on_device() ? device::device_facts(exec.device()).name
                                   : fmt::format("{} thread{}", exec.threads(), exec.threads() == 1 ? "" : "s"));
  result.notes = {fmt::format("Measured by soybean_plan --calibrate on {} host{} with {} rank{} on each.",
                              on_hosts.size(), on_hosts.size() == 1 ? "" : "s", each, each == 1 ? "" : "s"),
                  "The peaks are the best rates that were measured, not those of a data sheet."};
  if (machine.links.empty()) {
    machine.links.push_back(guessed_link(machine.processor));
    result.notes.emplace_back(
        "The link and the overlap are guesses: start it under mpirun with several ranks to measure "
        "them.");
  }
  return result;
}

} // namespace soybean::calibrate
