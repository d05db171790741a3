#pragma once
// Ranks compute plan and program each for itself; before the first step they make sure that they all got the same.
#include "comm/comm.hpp"
#include "program/program.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::runtime {

struct Named {
  std::string what; ///< "plan", "program", …
  std::uint64_t hash;
};

/// Compares the hashes with rank 0's. Collective; throws Error(failed) on every rank, naming what differs and on which
/// ranks. All ranks pass the same number of hashes.
void check_agreement(comm::Comm& comm, const std::vector<Named>& hashes);

/// That, for graph, plan and programs.
void agree(const graph::Graph& graph, const plan::Plan& plan, const std::vector<program::Program>& programs,
           comm::Comm& comm);

} // namespace soybean::runtime
