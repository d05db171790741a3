#pragma once
// The pass that lets transfers go on beside computation. A row of passes.cpp.
#include "program/program.hpp"

namespace soybean::program {

/// Reorders the instructions so that each transfer starts as soon as its data is there and is waited for only when
/// nothing else is left to do: gradients are summed while earlier layers go backward, and updates follow their waits.
/// What depends on one another keeps its order, so results do not change. Computations pass one that waits by a few
/// places at most (updates do not count) and only where the buffers then take no more than they do in the given order
/// at their peak; gradients that wait for their sums may take more. Where memory is saved (train.microbatches,
/// train.recompute), nothing but waits leaves its place, and these only as far as that peak allows. Frees each buffer
/// after its last use. Does nothing where nothing is sent.
void overlap(const graph::Graph& graph, Program& program);

} // namespace soybean::program
