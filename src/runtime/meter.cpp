#include "runtime/meter.hpp"

#include "program/frees.hpp"

#include <chrono>
#include <utility>

namespace soybean::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

} // namespace

Tracer::Tracer(Trace* trace, const graph::Graph& graph, const program::Program& program, const comm::Comm& comm)
    : trace_(trace), graph_(graph), program_(program), comm_(comm) {
  if (trace != nullptr) starts_ = program::starts_of(program);
}

void Tracer::did(Trace::Track track, std::size_t instruction, Time begin, Time end) {
  constexpr std::chrono::microseconds least{1}; // of what is no kernel: less is nothing but looking at the clock
  if (trace_ == nullptr) return;
  if (program_.instructions[instruction].kind != program::Kind::compute && end - begin < least) return;
  trace_->add(track, name(instruction), trace_->at(begin), trace_->at(end));
}

void Tracer::started(std::size_t instruction, comm::Token token) {
  if (trace_ != nullptr) under_way_.push_back({instruction, token, trace_->now()});
}

void Tracer::waited(comm::Token token) {
  std::erase_if(under_way_, [&](const Transfer& t) {
    if (t.token == token) ended(t);
    return t.token == token;
  });
}

void Tracer::look() {
  std::erase_if(under_way_, [&](const Transfer& t) {
    const bool done = comm_.done(t.token);
    if (done) ended(t);
    return done;
  });
}

void Tracer::ended(const Transfer& transfer) {
  const program::Instruction& i = program_.instructions[transfer.instruction];
  const std::int64_t bytes = i.step.elements * size_of(graph_.tensors[program_.buffers[i.inputs[0]].tensor].dtype);
  trace_->add(Trace::Track::transfer, name(transfer.instruction), transfer.begin, trace_->now(), bytes / comm_.size());
}

/// A wait is called what it waits for.
std::string Tracer::name(std::size_t instruction) const {
  const program::Instruction& i = program_.instructions[instruction];
  const std::size_t named = i.kind == program::Kind::wait ? starts_[static_cast<std::size_t>(i.token)] : instruction;
  return describe(graph_, program_, program_.instructions[named]);
}

Meter::Meter(Profile& profile, const comm::Comm& comm, Tracer tracer)
    : profile_(profile), comm_(comm), tracer_(std::move(tracer)), begin_(Clock::now()), mark_(begin_) {
  before_ = seen_ = comm.counters();
  profile_.last = {};
}

void Meter::computed(std::size_t instruction) {
  const double seconds = lap(Trace::Track::computing, instruction);
  profile_.instructions[instruction].computing_seconds += seconds;
  profile_.last.computing_seconds += seconds;
}

void Meter::waited(std::size_t instruction) {
  const double seconds = lap(Trace::Track::waiting, instruction);
  const comm::Counters counters = comm_.counters();
  Work& work = profile_.instructions[instruction];
  work.waiting_seconds += seconds;
  work.received_bytes += counters.received_bytes - seen_.received_bytes + counters.control_bytes - seen_.control_bytes;
  seen_ = counters;
  profile_.last.waiting_seconds += seconds;
}

void Meter::finish() {
  Totals& last = profile_.last;
  last.seconds = seconds(begin_, Clock::now());
  const comm::Counters counters = comm_.counters();
  last.data_bytes = counters.received_bytes - before_.received_bytes;
  last.control_bytes = counters.control_bytes - before_.control_bytes;
  Totals& sum = profile_.sum;
  sum.seconds += last.seconds;
  sum.computing_seconds += last.computing_seconds;
  sum.waiting_seconds += last.waiting_seconds;
  sum.data_bytes += last.data_bytes;
  sum.control_bytes += last.control_bytes;
  ++profile_.steps;
}

double Meter::lap(Trace::Track track, std::size_t instruction) {
  const Clock::time_point now = Clock::now(), before = std::exchange(mark_, now);
  tracer_.did(track, instruction, before, now);
  return seconds(before, now);
}

} // namespace soybean::runtime
