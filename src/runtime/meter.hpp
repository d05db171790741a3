#pragma once
// What the executor's loop notes of a run: where its time and bytes go, and the events of a trace.
#include "comm/comm.hpp"
#include "graph/graph.hpp"
#include "program/program.hpp"
#include "runtime/profile.hpp"
#include "runtime/trace.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace soybean::runtime {

/// Adds what a program's instructions do to a trace, if there is one.
class Tracer {
public:
  /// `trace` may be null; the others must outlive it.
  Tracer(Trace* trace, const graph::Graph& graph, const program::Program& program, const comm::Comm& comm);

  using Time = std::chrono::steady_clock::time_point;
  void did(Trace::Track track, std::size_t instruction, Time begin, Time end);
  void started(std::size_t instruction, comm::Token token);
  void waited(comm::Token token);
  /// Looks which transfers are done.
  void look();

private:
  struct Transfer {
    std::size_t instruction;
    comm::Token token;
    double begin;
  };
  void ended(const Transfer& transfer);
  std::string name(std::size_t instruction) const;

  Trace* trace_;
  const graph::Graph& graph_;
  const program::Program& program_;
  const comm::Comm& comm_;
  std::vector<std::size_t> starts_; ///< per token
  std::vector<Transfer> under_way_;
};

/// Keeps count of where the time and bytes of one run of a program go, from its construction to finish().
class Meter {
public:
  Meter(Profile& profile, const comm::Comm& comm, Tracer tracer);
  /// All the time since the last call of either was this instruction's.
  void computed(std::size_t instruction);
  void waited(std::size_t instruction);
  void finish();
  Tracer& tracer() noexcept { return tracer_; }

private:
  /// Until now since the last call; adds it to the trace.
  double lap(Trace::Track track, std::size_t instruction);
  Profile& profile_;
  const comm::Comm& comm_;
  Tracer tracer_;
  std::chrono::steady_clock::time_point begin_, mark_;
  comm::Counters before_, seen_;
};

} // namespace soybean::runtime
