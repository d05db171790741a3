#pragma once
// The timeline that --trace leaves in the run's folder.
#include "comm/comm.hpp"
#include "runtime/trace.hpp"

#include <string>

namespace soybean::train {

/// Writes the events of all ranks to `path` in Chrome's trace event format, which Perfetto reads: a rank is a process
/// with a track each for what it computes, waits for and does beside that; transfers are asynchronous events. Times in
/// microseconds. Collective; rank 0 writes. Throws Error(failed) where that fails.
void write_trace(const runtime::Trace& trace, const std::string& path, comm::Comm& comm);

} // namespace soybean::train
