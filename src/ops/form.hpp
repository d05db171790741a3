#pragma once
// The index form of a node, einsum-like: its loop indices and which of them runs along each dim of each operand. It is
// the single source from which planner, lowering, tests and documentation derive how an operator may be split (DESIGN
// §3).
#include "graph/graph.hpp"
#include "tiling/tiling.hpp"

#include <string>
#include <vector>

namespace soybean::ops {

struct LoopIndex {
  std::string name;       ///< "b", "c", "o", "g", "h", …
  std::int64_t count = 0; ///< number of indivisible units along it: into how many non-empty blocks it can be split
  bool splittable = true;
  bool batch = false;   ///< runs over samples (what strategy `data` splits)
  bool spatial = false; ///< runs over rows or columns of images
};

/// Which loop index runs along a dim of an operand, and how many elements one unit of it covers there; or whose blocks
/// need a range of it, with a halo, as the windows of a convolution do of an image's rows.
struct OperandDim {
  int index = -1; ///< into Form::indices
  std::int64_t unit = 1;
  tiling::Halo halo = {};
};

using OperandForm = std::vector<OperandDim>; ///< one per dim of the tensor

struct Form {
  std::vector<LoopIndex> indices;
  std::vector<OperandForm> inputs, outputs; ///< in the node's order
  bool replicable = false; ///< cheap enough to be computed by all parts of a cut (loss, vectors, update)
  bool may_idle = false;   ///< so cheap that it does not matter when some ranks have nothing of it
  bool linear = false;     ///< may take all its (single dtype) operands partial and yield partial results
};

/// What a node does on one cut: splits an index (>= 0), computes replicated, or passes partial sums through.
using Choice = std::int16_t;
constexpr Choice choose_replicated = -1;
constexpr Choice choose_linear = -2;

/// Every choice the form allows on a cut, in a fixed order: splittable indices, rows and columns last, then replicated,
/// linear.
std::vector<Choice> allowed_choices(const Form& form);

/// The tilings in which operands must arrive and results are produced when cut i does choices[i]. An operand that has
/// the split index is split on its dim, one that has it not is replicated; a result that has it not is partial.
/// All are normalised. Operands may have halos, results never.
struct OperandTilings {
  std::vector<tiling::Tiling> inputs, outputs;
};
OperandTilings operand_tilings(const Form& form, const graph::Graph& graph, const graph::Node& node,
                               const tiling::Mesh& mesh, const std::vector<Choice>& choices);

/// "b", "c", "replicated", "linear".
std::string to_string(const Form& form, Choice choice);
/// "b c, c o -> b o" as in the documentation; "~h": a range of what blocks of h need.
std::string to_string(const Form& form);

} // namespace soybean::ops
