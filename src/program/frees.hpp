#pragma once
// Lives of buffers as a program's instructions show them. Called by lowering, and by passes that reorder.
#include "program/program.hpp"

#include <cstddef>
#include <vector>

namespace soybean::program {

/// The start of each token.
std::vector<std::size_t> starts_of(const Program& program);

/// Per instruction: a start whose transient source nothing reads once it has been waited for, nor meanwhile. After it
/// the source's memory may serve as scratch.
std::vector<char> last_sends(const Program& program);

/// Frees each transient buffer, metrics excepted, right after the instruction that uses it last. There must be no free
/// yet.
void insert_frees(Program& program);

} // namespace soybean::program
