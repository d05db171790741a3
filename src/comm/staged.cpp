#include "comm/staged.hpp"

#include "base/error.hpp"
#include "comm/local.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace soybean::comm {

namespace {

/// Bytes that messages take in the page-locked memory, each beginning on a boundary of its own.
std::int64_t room(const Collective& c, std::int64_t count) {
  constexpr std::int64_t boundary = 64;
  return (count * size_of(c.dtype) + boundary - 1) / boundary * boundary;
}

std::int64_t buffer_bytes(const Collective& c, int rank) {
  if (c.kind != Kind::exchange)
    return c.group.size() == 1 ? 0 : room(c, std::accumulate(c.counts.begin(), c.counts.end(), std::int64_t{0}));
  std::int64_t bytes = 0;
  for (const auto* messages : {&c.sends, &c.receives})
    for (const Message& m : *messages)
      if (m.peer != rank) bytes += room(c, m.count);
  return bytes;
}

} // namespace

StagedComm::StagedComm(std::unique_ptr<Comm> host, const StagedOptions& options)
    : LayeredComm(std::move(host)), options_(options) {}

// Page-locked memory must not go while copies are under way.
StagedComm::~StagedComm() {
  for (const auto* flows : {&flows_, &idle_})
    for (const auto& flow : *flows) try {
        flow->stream.synchronise();
      } catch (const std::exception&) { // an accelerator that failed has no copies under way any more
        continue;
      }
}

/// The one with the smallest memory that suffices, else the one with the largest: programs repeat, so after a step none
/// grows any more.
std::unique_ptr<StagedComm::Flow> StagedComm::idle_flow(int device, std::int64_t bytes) {
  std::unique_ptr<Flow>* best = nullptr;
  for (auto& flow : idle_) {
    if (flow->stream.device() != device) continue;
    const std::int64_t has = flow->buffer.bytes(), most = best != nullptr ? (*best)->buffer.bytes() : 0;
    if (best == nullptr || (has >= bytes ? most < bytes || has < most : most < bytes && has > most)) best = &flow;
  }
  if (best == nullptr) return std::make_unique<Flow>(device);
  std::swap(*best, idle_.back());
  std::unique_ptr<Flow> flow = std::move(idle_.back());
  idle_.pop_back();
  return flow;
}

Token StagedComm::start(const Collective& collective, const device::Exec& exec) {
  const bool staged = exec.on_device() || options_.always;
  const bool copies = staged && !(options_.device_exchanges && collective.kind == Kind::exchange);
  const std::int64_t bytes = copies ? buffer_bytes(collective, rank()) + below().scratch_bytes(collective) : 0;
  std::unique_ptr<Flow> flow = idle_flow(exec.device(), bytes);
  flow->token = started_++;
  flow->state = State::copying_out;
  flow->staged = staged;
  flow->copies = copies;
  flow->collective = collective; // into memory of earlier ones
  flow->exec = &exec;
  if (staged) {
    if (!host_) host_ = std::make_unique<device::Exec>(exec.threads());
    if (flow->buffer.bytes() < bytes) {
      flow->stream.synchronise();
      flow->buffer = {};
      flow->buffer = device::HostBuffer(exec.device(), bytes);
    }
    copy_out(*flow, exec);
  }
  flows_.push_back(std::move(flow));
  begin();
  return flows_.back()->token;
}

/// Queues the copies out and says what is to be done below.
void StagedComm::copy_out(Flow& flow, const device::Exec& exec) {
  const Collective& c = flow.collective;
  Collective& host = flow.host;
  host.kind = c.kind;
  host.dtype = c.dtype;
  host.group = c.group;
  host.counts = c.counts;
  host.label = c.label;
  host.control = c.control;
  host.scratch = nullptr;
  host.sends.clear();
  host.receives.clear();
  flow.reached.record(exec.stream());
  flow.stream.wait(flow.reached);
  copy_local(c, rank(), flow.stream);
  std::byte* at = flow.buffer.data();
  if (c.kind == Kind::exchange && !flow.copies) {
    const auto others = [&](const Message& m) { return m.peer != rank(); };
    std::copy_if(c.sends.begin(), c.sends.end(), std::back_inserter(host.sends), others);
    std::copy_if(c.receives.begin(), c.receives.end(), std::back_inserter(host.receives), others);
  } else if (c.kind == Kind::exchange) {
    for (const Message& m : c.sends) {
      if (m.peer == rank()) continue;
      flow.stream.copy(at, m.data, m.count * size_of(c.dtype));
      host.sends.push_back({m.peer, at, m.count});
      at += room(c, m.count);
    }
    for (const Message& m : c.receives) {
      if (m.peer == rank()) continue;
      host.receives.push_back({m.peer, at, m.count});
      at += room(c, m.count);
    }
  } else if (c.group.size() == 1) { // nothing to do below but to begin something
    host.kind = Kind::all_reduce;
    host.counts.assign(1, 0);
    host.send = host.recv = nullptr;
  } else {
    const auto me = std::find(c.group.begin(), c.group.end(), rank()) - c.group.begin();
    const bool scattered = c.kind == Kind::reduce_scatter;
    const auto begin = c.counts.begin();
    const std::int64_t first = scattered ? std::accumulate(begin, begin + me, std::int64_t{0}) : 0;
    const std::int64_t total = std::accumulate(begin, c.counts.end(), std::int64_t{0});
    flow.stream.copy(at, c.send, total * size_of(c.dtype));
    host.send = at;
    host.recv = at + first * size_of(c.dtype);
    if (below().scratch_bytes(c) > 0) host.scratch = at + room(c, total);
  }
  flow.copied.record(flow.stream);
}

void StagedComm::copy_back(Flow& flow) {
  const Collective &c = flow.collective, &host = flow.host;
  if (c.kind == Kind::exchange && flow.copies) {
    auto from = host.receives.begin();
    for (const Message& m : c.receives)
      if (m.peer != rank()) flow.stream.copy(m.data, (from++)->data, m.count * size_of(c.dtype));
  } else if (c.kind != Kind::exchange && c.group.size() > 1) {
    const auto me = std::find(c.group.begin(), c.group.end(), rank()) - c.group.begin();
    const std::int64_t count = c.counts[c.kind == Kind::reduce_scatter ? static_cast<std::size_t>(me) : 0];
    flow.stream.copy(c.recv, host.recv, count * size_of(c.dtype));
  }
  flow.copied.record(flow.stream);
}

bool StagedComm::begin() {
  bool any = false;
  for (const auto& flow : flows_) {
    if (flow->state != State::copying_out) continue;
    if (flow->staged && !flow->copied.done()) break; // nor may later ones begin
    flow->below = flow->staged ? below().start(flow->host, *host_) : below().start(flow->collective, *flow->exec);
    flow->state = State::communicating;
    any = true;
  }
  return any;
}

// While the Comm below blocks it calls poll, which must not wait for the same collective.
void StagedComm::wait_below(Flow& flow) {
  flow.state = State::waiting;
  try {
    below().wait(flow.below);
  } catch (...) {
    flow.state = State::communicating;
    throw;
  }
  if (flow.staged) copy_back(flow);
  flow.state = State::copying_back;
}

bool StagedComm::finish() {
  bool any = false;
  for (const auto& flow : flows_)
    if (flow->state == State::communicating && below().done(flow->below)) {
      wait_below(*flow);
      any = true;
    }
  return any;
}

bool StagedComm::poll() {
  bool any = below().poll();
  any |= begin();
  any |= finish();
  return any;
}

StagedComm::Flow& StagedComm::find(Token token) const {
  const auto found = std::find_if(flows_.begin(), flows_.end(), [&](const auto& flow) { return flow->token == token; });
  if (found == flows_.end()) ensure(false, fmt::format("wait for token {}, which is not under way", token));
  return **found;
}

bool StagedComm::done(Token token) const {
  const Flow& flow = find(token);
  return flow.state == State::copying_back && (!flow.staged || flow.copied.done());
}

void StagedComm::stalled(Token token) {
  const Flow& flow = find(token);
  if (flow.state == State::communicating || flow.state == State::waiting) below().stalled(flow.below);
  fail_running(
      "comm: copy {} the host for '{}' stalled on rank {}, got no progress for {:g} s, expected the accelerator "
      "to come to it. It may hang in a kernel or in a collective before this one",
      flow.state == State::copying_out ? "to" : "from", flow.collective.label, rank(), stall_seconds);
}

void StagedComm::wait(Token token) {
  Flow& flow = find(token);
  poll_until([&] { return flow.state != State::copying_out; }, [&] { stalled(token); });
  if (flow.state == State::communicating) {
    const double begin = seconds_now();
    wait_below(flow);
    waiting_seconds_ += seconds_now() - begin;
  }
  if (flow.staged) flow.exec->stream().wait(flow.copied);
  const auto found =
      std::find_if(flows_.begin(), flows_.end(), [&](const auto& other) { return other.get() == &flow; });
  idle_.push_back(std::move(*found));
  flows_.erase(found);
}

Counters StagedComm::counters() const {
  Counters counters = below().counters();
  counters.waiting_seconds = waiting_seconds_;
  return counters;
}

} // namespace soybean::comm
