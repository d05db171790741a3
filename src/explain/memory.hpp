#pragma once
// What a rank holds in the course of a step. Called inside src/explain.
#include "explain/costed.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace soybean::explain {

enum class Held : std::uint8_t { weights, state, inputs, activations, gradients, others };
constexpr std::size_t held_kinds = 6;
std::string_view to_string(Held kind);

using HeldBytes = std::array<std::int64_t, held_kinds>; ///< by Held
std::int64_t total(const HeldBytes& bytes);

/// A buffer that is held at the peak.
struct HeldBuffer {
  program::BufferId buffer = -1;
  std::int64_t bytes = 0;
};

struct MemoryCourse {
  std::vector<HeldBytes> bytes;    ///< while each instruction runs
  std::size_t peak = 0;            ///< the first instruction at which most is held
  std::vector<HeldBuffer> at_peak; ///< what is held then, the largest first
};
MemoryCourse memory_course(const graph::Graph& graph, const Costed& costed);

} // namespace soybean::explain
