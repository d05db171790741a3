#pragma once
// The pass that lets bias and activation run in the call of the convolution or product they follow, so that its result
// is written once, complete. A row of passes.cpp.
#include "program/program.hpp"

namespace soybean::program {

/// Joins `compute conv2d`, `bias`, `relu` (either may be missing; dense alike) into one instruction where the results
/// between them are used by nothing else and are in the tiling the next one takes. What moves operands of the later
/// nodes is done before the joined instruction, what is freed between them after it.
void fuse(const graph::Graph& graph, Program& program);

} // namespace soybean::program
