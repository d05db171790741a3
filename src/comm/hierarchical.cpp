#include "comm/hierarchical.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace soybean::comm {

HierarchicalComm::HierarchicalComm(Halves halves, std::vector<int> hosts)
    : LayeredComm(std::move(halves.between)),
      inside_(std::move(halves.inside)),
      after_(std::move(halves.after)),
      between_(&below()),
      hosts_(std::move(hosts)) {
  ensure(std::ssize(hosts_) == size() && inside_->size() == size(), "hierarchical: one host per rank");
  join(*inside_);
  if (after_) join(*after_);
}

// Queues must not go while they wait for other ranks, which may never come.
HierarchicalComm::~HierarchicalComm() {
  if (std::uncaught_exceptions() > 0 || !flows_.empty()) abort();
}

void HierarchicalComm::prepare(const std::vector<std::vector<int>>& groups) {
  std::array<std::vector<std::vector<int>>, Stages::count> of_stage;
  Collective c{.kind = Kind::all_reduce};
  Stages stages;
  for (Kind kind : {Kind::all_reduce, Kind::reduce_scatter}) // which differ in the order of unequal hosts' members
    for (const std::vector<int>& group : groups) {
      c.kind = kind;
      c.group = group;
      c.counts.assign(kind == Kind::all_reduce ? 1 : group.size(), 0);
      stages.place(c, rank(), hosts_);
      stages.build(nullptr);
      for (int s = 0; s + 1 < Stages::count; ++s)
        of_stage[static_cast<std::size_t>(s)].push_back(stages.stage(s).group);
    }
  for (int s = 0; s + 1 < Stages::count; ++s) half(s).prepare(of_stage[static_cast<std::size_t>(s)]);
}

std::unique_ptr<HierarchicalComm::Flow> HierarchicalComm::idle_flow(const device::Exec& exec) {
  std::unique_ptr<Flow> flow;
  if (idle_.empty()) {
    flow = std::make_unique<Flow>();
  } else {
    flow = std::move(idle_.back());
    idle_.pop_back();
  }
  flow->states.fill(State::pending);
  flow->last_listed = false;
  flow->exec = &exec;
  if (!exec.on_device())
    flow->side.reset();
  else if (!flow->side || flow->side->exec.device() != exec.device())
    flow->side = std::make_unique<Side>(exec.threads(), exec.device());
  return flow;
}

std::int64_t HierarchicalComm::scratch_bytes(const Collective& collective) const {
  asked_.place(collective, rank(), hosts_);
  return asked_.scratch_bytes();
}

Token HierarchicalComm::start(const Collective& collective, const device::Exec& exec) {
  std::unique_ptr<Flow> flow = idle_flow(exec);
  flow->token = started_++;
  flow->collective = collective; // into memory of earlier ones
  flow->stages.place(flow->collective, rank(), hosts_);
  const device::Exec& stage_exec = flow->stage_exec();
  if (flow->side) {
    flow->side->begun.record(exec.stream());
    stage_exec.stream().wait(flow->side->begun);
  }
  if (collective.scratch == nullptr && flow->stages.scratch_bytes() > 0)
    ensure(false, "hierarchical: a collective is started without its scratch");
  flow->stages.build(collective.scratch);
  for (const LocalCopy& c : flow->stages.copies()) stage_exec.stream().copy(c.to, c.from, c.bytes);
  flows_.push_back(std::move(flow));
  Flow& started = *flows_.back();
  queues_[0].push_back({&started, 0});
  queues_[1].push_back({&started, 1});
  constexpr Token lag = 2; // starts that a stage after lets pass, so that their stages inside need not wait for it
  list_last(after_ ? started.token : started.token - lag);
  begin_stages();
  return started.token;
}

void HierarchicalComm::list_last(Token newest) {
  for (const auto& flow : flows_)
    if (flow->token <= newest && !std::exchange(flow->last_listed, true))
      queues_[queue_of(2)].push_back({flow.get(), 2});
}

bool HierarchicalComm::ready(const Flow& flow, int stage) const {
  if (flow.stages.at_once()) return true;
  for (int s = 0; s < stage; ++s)
    if (flow.states[static_cast<std::size_t>(s)] != State::done) return false;
  return true;
}

bool HierarchicalComm::begin_stages() {
  bool any = false;
  for (std::vector<Turn>& queue : queues_)
    while (!queue.empty() && ready(*queue.front().flow, queue.front().stage)) {
      const auto [flow, stage] = queue.front();
      queue.erase(queue.begin());
      flow->tokens[static_cast<std::size_t>(stage)] = half(stage).start(flow->stages.stage(stage), flow->stage_exec());
      flow->states[static_cast<std::size_t>(stage)] = State::started;
      any = true;
    }
  return any;
}

bool HierarchicalComm::finish_stages() {
  bool any = false;
  for (const auto& flow : flows_)
    for (int s = 0; s < Stages::count; ++s) {
      State& state = flow->states[static_cast<std::size_t>(s)];
      if (state != State::started || !half(s).done(flow->tokens[static_cast<std::size_t>(s)])) continue;
      wait_for(*flow, s);
      any = true;
    }
  return any;
}

// While a half blocks it calls poll, which must not wait for the same stage.
void HierarchicalComm::wait_for(Flow& flow, int stage) {
  State& state = flow.states[static_cast<std::size_t>(stage)];
  state = State::waiting;
  try {
    half(stage).stall_seconds = stall_seconds;
    half(stage).wait(flow.tokens[static_cast<std::size_t>(stage)]);
  } catch (...) {
    state = State::started;
    throw;
  }
  state = State::done;
}

bool HierarchicalComm::advance() {
  bool any = finish_stages();
  while (begin_stages()) any |= finish_stages() || true;
  return any;
}

bool HierarchicalComm::poll() {
  bool any = inside_->poll();
  any |= between_->poll();
  if (after_) any |= after_->poll();
  any |= advance();
  return any;
}

HierarchicalComm::Flow& HierarchicalComm::find(Token token) const {
  const auto found = std::find_if(flows_.begin(), flows_.end(), [&](const auto& flow) { return flow->token == token; });
  if (found == flows_.end()) ensure(false, fmt::format("wait for token {}, which is not under way", token));
  return **found;
}

bool HierarchicalComm::done(Token token) const {
  const auto& states = find(token).states;
  return std::count(states.begin(), states.end(), State::done) == Stages::count;
}

void HierarchicalComm::wait(Token token) {
  Flow& flow = find(token);
  list_last(token);
  poll_until(
      [&] {
        return flow.states[0] == State::done && flow.states[1] == State::done && flow.states[2] != State::pending;
      },
      [&] { report_stall(); });
  if (flow.states[2] == State::started) {
    const double begin = seconds_now();
    wait_for(flow, 2); // on an accelerator the host need not wait
    waiting_seconds_ += seconds_now() - begin;
  }
  if (flow.side) {
    flow.side->ended.record(flow.side->exec.stream());
    flow.exec->stream().wait(flow.side->ended);
  }
  const auto found =
      std::find_if(flows_.begin(), flows_.end(), [&](const auto& other) { return other.get() == &flow; });
  idle_.push_back(std::move(*found));
  flows_.erase(found);
}

void HierarchicalComm::report_stall_of(const Flow& flow) {
  for (int s = 0; s < Stages::count; ++s) {
    if (flow.states[static_cast<std::size_t>(s)] != State::started) continue;
    half(s).stall_seconds = stall_seconds;
    half(s).stalled(flow.tokens[static_cast<std::size_t>(s)]);
  }
}

/// The half that the oldest collective under way is waiting for knows what is missing.
void HierarchicalComm::report_stall() {
  for (const auto& flow : flows_) report_stall_of(*flow);
  throw Bug("hierarchical: no stage is under way, and nothing moves");
}

void HierarchicalComm::stalled(Token token) {
  report_stall_of(find(token));
  report_stall();
}

void HierarchicalComm::fence(const device::Event& event) {
  inside_->stall_seconds = stall_seconds;
  inside_->fence(event);
}

void HierarchicalComm::abort() noexcept {
  for (Comm* half : {inside_.get(), between_, after_.get()})
    if (half != nullptr) half->abort();
}

Counters HierarchicalComm::counters() const {
  Counters total{.waiting_seconds = waiting_seconds_};
  for (const Comm* half : std::array<const Comm*, 3>{inside_.get(), between_, after_.get()}) {
    if (half == nullptr) continue;
    const Counters c = half->counters();
    total.received_bytes += c.received_bytes;
    total.control_bytes += c.control_bytes;
    total.outside_bytes += c.outside_bytes;
  }
  return total;
}

} // namespace soybean::comm
