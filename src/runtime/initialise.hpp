#pragma once
// First values of parameters and states, the same for every plan and rank count (DESIGN §6).
#include "runtime/executor.hpp"

#include <cstdint>

namespace soybean::runtime {

/// Element i (logical, global, row-major) of parameter t is a function of (seed, hash of t's name, i) by Philox:
/// uniform in [-scale, scale), normal · scale or constant as its Initializer says, computed in double, then rounded.
/// States likewise; most begin as zeros.
void initialise_parameters(const graph::Graph& graph, const Executor& executor, std::uint64_t seed);

} // namespace soybean::runtime
