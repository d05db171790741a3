#pragma once
// Where a step's time and bytes went, instruction by instruction. Filled by the executor, read by metrics and reports.
#include "graph/graph.hpp"
#include "program/program.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::runtime {

/// What one instruction did on this rank, summed over steps.
struct Work {
  double computing_seconds = 0; ///< kernels, packing, unpacking, copies
  double waiting_seconds = 0;   ///< in Comm::start and Comm::wait
  std::int64_t received_bytes = 0;
};

/// Totals of this rank over one or more steps.
struct Totals {
  double seconds = 0;
  double computing_seconds = 0;
  double waiting_seconds = 0;
  std::int64_t data_bytes = 0;    ///< received, as Comm counted them
  std::int64_t control_bytes = 0; ///< metrics, counted apart
};

struct Profile {
  std::vector<Work> instructions; ///< as Program::instructions
  Totals last;                    ///< of the latest step
  Totals sum;                     ///< of all steps
  std::int64_t steps = 0;
};

/// What an instruction does: "dense+bias+relu fc6", "all_reduce fc6.weight.grad@partial".
std::string describe(const graph::Graph& graph, const program::Program& program, const program::Instruction& i);

/// The `rows` instructions that took most time, one line each: seconds per step computing and waiting, bytes, and what
/// they do.
std::string report(const graph::Graph& graph, const program::Program& program, const Profile& profile, int rows);

} // namespace soybean::runtime
