#pragma once
// What messages need beside the buffers they come from and go to, told from the program alone. Called where a step is
// planned; the runtime asks what carries the messages, and comes to the same.
#include "program/memory.hpp"

#include <cstdint>
#include <optional>

namespace soybean::program {

/// Where the elements of `part` begin in a block's memory, counted in elements, if they follow each other there: dim 1
/// innermost where the tensor has spatial positions (graph::Tensor::spatial), a flattened one in whole channels. An
/// empty part begins at 0.
std::optional<std::int64_t> run_in_block(const Box& block, const Box& part, std::int64_t spatial);

/// Bytes of packed messages of every start on that rank: those that are not one run of a block's memory, and the parts
/// of a reduce-scatter that may not be added up in place.
Workspaces staging(const graph::Graph& graph, const Program& program, int rank);

} // namespace soybean::program
