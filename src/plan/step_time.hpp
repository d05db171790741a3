#pragma once
// A step's time as prices that add up: nanoseconds of computing a variable's nodes and of moving a tensor on a machine
// (src/machine/time.hpp), and what moves between classes of tilings take at least. Called inside src/plan only.
#include "graph/graph.hpp"
#include "machine/time.hpp"
#include "plan/model.hpp"
#include "plan/plan.hpp"
#include "tiling/mesh.hpp"
#include "tiling/tiling.hpp"

#include <cstdint>
#include <vector>

namespace soybean::plan {

/// Of a variable's nodes, the fullest rank's.
std::int64_t computing_time(const machine::Setting& setting, const Model& model, int variable, const Choices& choices);

/// Of one move, kernels that pack included.
std::int64_t moving_time(const machine::Setting& setting, const graph::Tensor& tensor, const tiling::Tiling& from,
                         const tiling::Tiling& to);

/// Of a plan's step: what its nodes and moves add up to.
std::int64_t step_time(const machine::Setting& setting, const Model& model, const Plan& plan);

/// Per cut, equal for those whose order makes little difference to times: of equal parts, across the same links.
std::vector<int> alike_cuts(const machine::Setting& setting);

/// What moves between classes of tilings (classes.hpp, of `alike_cuts`) take at least. For each level of links: groups
/// of ranks within it are taken for one, which gives the fewest elements that cross it, and these for spread over all
/// of its links.
class LeastTime {
public:
  explicit LeastTime(const machine::Setting& setting);
  std::int64_t moving(const graph::Tensor& tensor, const tiling::Tiling& from, const tiling::Tiling& to) const;

private:
  struct Crossing {
    tiling::Mesh mesh;           ///< of the groups within
    double latency = 0;          ///< of the fastest message across
    double seconds_per_byte = 0; ///< that all ranks together receive
  };
  const machine::Setting& setting_;
  std::vector<Crossing> crossings_; ///< all ranks' first
};

} // namespace soybean::plan
