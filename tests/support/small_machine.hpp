#pragma once
// A machine for tiny graphs.
#include "machine/time.hpp"

#include <utility>

namespace soybean::support {

/// Two ranks to a host and links between hosts that are `slower` than those inside; so slow at everything that for tiny
/// sizes, too, latencies, starts of kernels, bytes and flops all count.
inline machine::Setting small_hosts(const tiling::Mesh& mesh, double slower) {
  machine::Machine machine{.name = "small", .file = "small.toml", .ranks_per_host = 2, .memory = 1 << 30};
  machine.processor.launch = 2e-7;
  machine.processor.memory_bandwidth = 1e9;
  for (machine::Rates& rates : machine.processor.rates)
    rates = {.peak = 1e9, .products = 8e8, .convolutions = 5e8, .arithmetic = 4e8};
  machine.links = {
      {.name = "inside", .ranks = 2, .latency = 1e-7, .bandwidth = 1e9},
      {.name = "network", .latency = slower * 1e-7, .bandwidth = 1e9 / slower, .per = machine::Per::group}};
  return machine::make_setting(std::move(machine), mesh, machine::Precision::fp32);
}

} // namespace soybean::support
