#pragma once
// What the search derives from a graph once, whatever the mesh: forms, which nodes are decided together, and how each
// tensor may be kept. Hides twins and the merging of a parameter with its next value. Called inside src/plan only.
#include "graph/graph.hpp"
#include "ops/form.hpp"
#include "tiling/tiling.hpp"

#include <cstdint>
#include <vector>

namespace soybean::plan {

using Choices = std::vector<ops::Choice>; ///< what a node does, one entry per cut

struct Model {
  const graph::Graph* graph;
  std::vector<ops::Form> forms; ///< per node
  /// Nodes that must do the same (twins) are one variable of the search; `members` lists them, the leader first.
  std::vector<int> variable; ///< per node
  std::vector<std::vector<graph::NodeId>> members;
  std::vector<std::vector<ops::Choice>> allowed; ///< per variable: what all its members may do on a cut
  /// Per tensor: what its stored tiling may do on a cut: replicate, or split a dim some form of its nodes splits.
  std::vector<std::vector<tiling::Entry>> entries;
  std::vector<int> batch_dim; ///< per tensor: the dim that runs over samples, -1 if none does
};

Model make_model(const graph::Graph& graph);

/// A tensor kept over steps: its stored tiling is that in which its next value must end.
bool is_kept(const graph::Tensor& tensor);
/// Read in any tiling for free: inputs, labels, weights of samples, the step's scalars.
bool is_free_source(const graph::Tensor& tensor);

/// Whether some index is split into more blocks than it has units, on the leading cuts the choices speak of, of a node
/// that should keep all ranks busy.
bool leaves_empty(const ops::Form& form, const tiling::Mesh& mesh, const Choices& choices);

} // namespace soybean::plan
