#pragma once
// Where every buffer of a program lives on one rank: offsets in one arena. Predicted peak = arena size = allocated.
#include "program/program.hpp"

#include <cstdint>
#include <vector>

namespace soybean::program {

/// Extra bytes an instruction needs on this rank while it runs (compute: kernel scratch; start: staging, kept until its
/// wait). Same length as Program::instructions. The runtime asks kernels and comm; soybean_plan estimates.
using Workspaces = std::vector<std::int64_t>;

struct Layout {
  std::vector<Box> boxes;                      ///< per buffer: what this rank holds of it
  std::vector<std::int64_t> offsets;           ///< per buffer, bytes from the start of the arena, 64-byte aligned
  std::vector<std::int64_t> workspace_offsets; ///< per instruction, -1 if it needs none
  std::int64_t persistent_bytes =
      0; ///< the first bytes of the arena: persistent buffers, same in all programs of a run
  std::int64_t arena_bytes = 0;
};

constexpr std::int64_t alignment = 64;

Layout assign_memory(const graph::Graph& graph, const Program& program, int rank, const Workspaces& workspaces);

/// What the training step of a plan takes on the fullest rank, the last one, without scratch of kernels.
std::int64_t peak_bytes(const graph::Graph& graph, const plan::Plan& plan);

/// When the memory of a transient buffer, and of those that share it, is in use: from instruction `begin` to `end`,
/// both included (the number of instructions: to the end of the step).
struct Lifetime {
  BufferId buffer = -1; ///< the one whose memory it is: no alias
  std::int64_t begin = 0, end = 0;
  std::int64_t bytes = 0; ///< aligned
};
std::vector<Lifetime> lifetimes(const graph::Graph& graph, const Program& program, const Layout& layout);

/// Throws Bug if two buffers or workspaces that live at the same time overlap.
void verify(const graph::Graph& graph, const Program& program, const Layout& layout, const Workspaces& workspaces);

} // namespace soybean::program
