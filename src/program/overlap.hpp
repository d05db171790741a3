#pragma once
// The pass that lets transfers go on beside computation. A row of passes.cpp.
#include "program/program.hpp"

namespace soybean::program {

/// Reorders the instructions so that each transfer starts as soon as its data is there and is waited for only when
/// nothing else is left to do: gradients are summed while earlier layers go backward, and updates follow their waits.
/// What depends on one another keeps its order, so results do not change. Computations pass one that waits by a few
/// places at most (updates do not count), as each that runs early holds its results longer. Frees each buffer after its
/// last use. Does nothing where nothing is sent.
void overlap(const graph::Graph& graph, Program& program);

} // namespace soybean::program
