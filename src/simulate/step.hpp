#pragma once
// The predicted step: walks the program of one rank, the fullest, with a clock for its kernels and a queue of transfers
// beside them, as the executor runs it. Hides how transfers overlap. Called by soybean_plan.
#include "graph/graph.hpp"
#include "machine/time.hpp"
#include "plan/plan.hpp"
#include "program/program.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace soybean::simulate {

/// What one instruction does on one of the two: the rank's processor or its network.
struct Interval {
  std::size_t instruction = 0; ///< index into the program's
  bool network = false;        ///< a transfer, from its turn until it is done; else kernels
  double begin = 0, end = 0;   ///< seconds from the start of the step
};

/// Where the time of a layer goes; the sums over layers are the step's, but for reading.
struct LayerSeconds {
  double computing = 0;
  double packing = 0; ///< kernels that pack, unpack and copy blocks
  double waiting = 0; ///< for transfers, while nothing is computed
};

struct Step {
  double seconds = 0;                   ///< reading + computing + packing + waiting
  double reading = 0;                   ///< of the batch, before the program
  std::array<double, 3> computing = {}; ///< of nodes by graph::Phase
  double packing = 0, waiting = 0;
  double transferring = 0;          ///< of the network, hidden behind kernels or not
  double flops = 0;                 ///< of the fullest rank
  std::vector<LayerSeconds> layers; ///< as Graph::layers, then one for what belongs to none
  std::vector<Interval> timeline;   ///< by begin, separately for kernels and transfers
};

/// Seconds of one run of a program. `program` comes from `plan` (and passes); `setting` has its mesh. Transfers of
/// metrics are part of it.
Step predict(const machine::Setting& setting, const graph::Graph& graph, const plan::Plan& plan,
             const program::Program& program);

/// Lowers the plan to a training step, runs all passes but `skip`, and predicts that.
Step predict(const machine::Setting& setting, const graph::Graph& graph, const plan::Plan& plan,
             const std::vector<std::string>& skip = {});

} // namespace soybean::simulate
