#pragma once
// The clock: kernels of a network one by one, and collectives between ranks. Every rank measures the same at the same
// time, as in a run. Called by calibrate.cpp.
#include "calibrate/fit.hpp"
#include "comm/comm.hpp"
#include "device/exec.hpp"
#include "graph/graph.hpp"
#include "machine/machine.hpp"

#include <string_view>
#include <vector>

namespace soybean::calibrate {

/// Every kernel of the network's training step on this rank alone, or only those of one operator. Seconds are
/// medians, on average over the ranks. Collective.
std::vector<Sample> measure_kernels(const graph::Graph& graph, const device::Exec& exec, comm::Comm& comm,
                                    std::string_view only = "");

/// The links: inside hosts and between them, as far as there are ranks; none for one rank. `hosts`: the host of each
/// rank. Throws Error where hosts have different numbers of ranks, or ranks do not lie host by host. Collective.
std::vector<machine::Link> measure_links(const device::Exec& exec, comm::Comm& comm,
                                         const std::vector<std::string>& hosts);

/// Seconds in which a core goes from one rank to another and back, when they share it and wait for each other's
/// messages; 0 where no two ranks are on a host. Collective.
double measure_turn(const device::Exec& exec, comm::Comm& comm, const std::vector<std::string>& hosts);

/// How much of an all-reduce is done beside kernels, from 0 to 1. Collective.
double measure_overlap(const device::Exec& exec, comm::Comm& comm);

} // namespace soybean::calibrate
