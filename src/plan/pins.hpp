#pragma once
// Reading the tilings a user pinned tensors to. Called inside src/plan only.
#include "plan/planner.hpp"
#include "plan/strategy.hpp"

namespace soybean::plan {

/// Throws Error naming the pin: unknown tensor (with the nearest name), tiling that does not fit it, one that is not
/// stored at all, one the strategy rules out.
Pins parse_pins(const Model& model, const tiling::Mesh& mesh, const Options& options);

/// Throws Error: no plan satisfies the pins.
[[noreturn]] void fail_pins(const Options& options);

} // namespace soybean::plan
