#pragma once
// What tests see of the stand-ins for CUDA's libraries, which are linked into tests alone: accelerators whose memory is
// the host's and whose queues do their work at once. They note what the real libraries would not forgive (faults),
// count what costs time, know what is still alive, and can make any call fail. One state per process, as in the
// libraries they stand for. Not for several threads, but for the thread in which communicators are aborted. In programs
// the environment sets SOYBEAN_STANDIN_ACCELERATORS (how many), SOYBEAN_STANDIN_DRIVER (its CUDA) and
// SOYBEAN_STANDIN_RECORDS (whether queues record).
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace soybean::standins {

/// Back to one accelerator with 1 GiB, no call made, no fault. Objects that are alive stay so.
void reset();

struct Counts {
  std::int64_t host_waits = 0;      ///< calls in which the host waits for a stream, an event or everything
  std::int64_t pageable_copies = 0; ///< asynchronous copies from or to host memory that is not page-locked
  std::int64_t allocations = 0;     ///< cudaMalloc and cudaHostAlloc
  std::int64_t recorded = 0;        ///< pieces of work that went into a recording instead of being done
  std::int64_t launches = 0;        ///< of recordings
  std::int64_t heuristics = 0;      ///< searches for an algorithm
};
Counts counts();

/// One line each: uses of destroyed handles, memory that is not an accelerator's, overruns, shapes that do not fit
/// together, work for another accelerator than the one set, wrong workspaces.
std::vector<std::string> faults();

/// Handles and blocks of memory not yet released, by kind ("stream", "tensor descriptor", …); none of a kind: no entry.
std::map<std::string, int> alive();

/// Bytes of the accelerators' memory not yet given back.
std::int64_t allocated_bytes();

/// Functions that return a status, in the order called since the last reset.
const std::vector<std::string>& calls();
/// The k-th call from now on fails (1: the next), 0: none does.
void fail_call(std::int64_t k);
/// The next call of this name fails; "": none does.
void fail_call(const std::string& name);
/// Calls of this name say from now on that they do not offer what they are asked for.
void withdraw_call(const std::string& name);

/// Streams in which work was queued since the last reset.
std::vector<const void*> streams_used();

struct Accelerator {
  std::string name = "Stand-in";
  int major = 9, minor = 0;
  std::int64_t memory = std::int64_t{1} << 30;
  bool reads_pageable_memory = false;
};
void set_accelerators(const std::vector<Accelerator>& accelerators);
/// The driver's CUDA, as a number (12040); 0: there is no driver. With one of an earlier generation than the runtime's
/// no call finds an accelerator.
void set_driver(int version);
/// Whether streams can record. Kernels do not go through the stand-ins and would run at once, so by default they can
/// not.
void set_recording(bool possible);

/// What the heuristics offer for convolutions: a deterministic algorithm that asks for this much workspace comes first.
void set_first_workspace(std::int64_t bytes);
/// Without it the heuristics offer only algorithms that may not be taken.
void set_deterministic_algorithms(bool offered);

/// Arithmetic of the latest convolution or product: "fp32" or "tf32".
std::string latest_math();

} // namespace soybean::standins
