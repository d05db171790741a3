#include "comm/mpi.hpp"

#include "base/error.hpp"
#include "comm/add.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace soybean::comm {

namespace {

std::string_view name_of(Kind kind) {
  switch (kind) {
  case Kind::all_reduce:
    return "all_reduce";
  case Kind::reduce_scatter:
    return "reduce_scatter";
  case Kind::exchange:
    return "exchange";
  }
  throw Bug("unknown collective");
}

} // namespace

MpiComm::MpiComm(const MpiOptions& options) : options_(options), data_(duplicate_world()), control_(duplicate_world()) {
  const MessageSizes& sizes = options.sizes;
  ensure(sizes.chunk > 0 && sizes.chunk % 8 == 0 && sizes.part > 0 && sizes.part % 8 == 0, "sizes of messages");
  check(MPI_Comm_rank(data_.get(), &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(data_.get(), &size_), "MPI_Comm_size");
  void* highest = nullptr; // an int's place
  int known = 0;
  check(MPI_Comm_get_attr(data_.get(), MPI_TAG_UB, static_cast<void*>(&highest), &known), "MPI_Comm_get_attr");
  if (known) tags_ = Token{*static_cast<int*>(highest)} + 1;
  ensure(options.hosts.empty() || std::ssize(options.hosts) == size_, "one host per rank");
}

// Only after an error is anything still under way here; MPI is told to forget it.
MpiComm::~MpiComm() {
  for (const auto& flow : flows_) {
    for (std::int64_t i = flow->receives_done; i < flow->receives_posted; ++i) {
      MPI_Request& request = flow->receive_requests[i % window];
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    for (std::int64_t i = flow->sends_done; i < flow->sends_posted; ++i) {
      MPI_Request& request = flow->send_requests[i % window];
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }
}

bool MpiComm::Flow::done() const {
  return receives_done == static_cast<std::int64_t>(schedule.receives.size()) &&
         sends_done == static_cast<std::int64_t>(schedule.sends.size()) && library.requests.empty();
}

std::unique_ptr<MpiComm::Flow> MpiComm::idle_flow() {
  if (idle_.empty()) return std::make_unique<Flow>();
  std::unique_ptr<Flow> flow = std::move(idle_.back());
  idle_.pop_back();
  flow->receives_posted = flow->receives_done = flow->sends_posted = flow->sends_done = flow->staged = 0;
  return flow;
}

Token MpiComm::start(const Collective& collective, const device::Exec& exec) {
  if (exec.on_device()) ensure(false, "MPI's messages are in the host's memory");
  exec.fence(); // what is sent must have been computed
  std::unique_ptr<Flow> flow = idle_flow();
  flow->token = started_++;
  flow->collective = collective; // into memory of earlier ones
  flow->threads = exec.threads();
  const Collective& c = flow->collective;
  build_schedule(c, rank_, size_, options_.sizes, flow->schedule);
  if (options_.library && c.kind != Kind::exchange) {
    (c.control ? counters_.control_bytes : counters_.received_bytes) += received_bytes(flow->schedule); // nominal
    flow->schedule.clear();
    library_.start(c, rank_, options_.sizes.part, flow->library);
  }
  flows_.push_back(std::move(flow));
  post(*flows_.back());
  return flows_.back()->token;
}

std::byte* MpiComm::borrow_staging() {
  if (free_staging_.empty()) {
    staging_.emplace_back(new std::byte[static_cast<std::size_t>(options_.sizes.chunk)]);
    free_staging_.reserve(staging_.size());
    return staging_.back().get();
  }
  std::byte* buffer = free_staging_.back();
  free_staging_.pop_back();
  return buffer;
}

void MpiComm::post_receive(Flow& flow) {
  const Receive& r = flow.schedule.receives[flow.receives_posted];
  const std::int64_t slot = flow.receives_posted % window;
  std::byte* into = r.into;
  if (r.own != nullptr) {
    into = flow.staging[slot] = borrow_staging();
    ++flow.staged;
  }
  check(MPI_Irecv(into, static_cast<int>(r.bytes), MPI_BYTE, r.peer, tag_of(flow), data_.get(),
                  &flow.receive_requests[slot]),
        "MPI_Irecv");
  count(flow, r);
  ++flow.receives_posted;
}

void MpiComm::count(const Flow& flow, const Receive& receive) {
  if (flow.collective.control) {
    counters_.control_bytes += receive.bytes;
    return;
  }
  counters_.received_bytes += receive.bytes;
  const std::vector<int>& hosts = options_.hosts;
  if (!hosts.empty() && hosts[receive.peer] != hosts[rank_]) counters_.outside_bytes += receive.bytes;
}

void MpiComm::post_send(Flow& flow) {
  const Send& s = flow.schedule.sends[flow.sends_posted];
  check(MPI_Isend(s.from, static_cast<int>(s.bytes), MPI_BYTE, s.peer, tag_of(flow), data_.get(),
                  &flow.send_requests[flow.sends_posted % window]),
        "MPI_Isend");
  ++flow.sends_posted;
}

bool MpiComm::post(Flow& flow) {
  const std::int64_t before = flow.receives_posted + flow.sends_posted;
  const auto& [receives, sends] = flow.schedule;
  while (flow.receives_posted < static_cast<std::int64_t>(receives.size()) &&
         flow.receives_posted - flow.receives_done < window) {
    const Receive& next = receives[flow.receives_posted];
    if (next.after > flow.sends_done || (next.own != nullptr && flow.staged == staged_window)) break;
    post_receive(flow);
  }
  while (flow.sends_posted < static_cast<std::int64_t>(sends.size()) && flow.sends_posted - flow.sends_done < window &&
         sends[flow.sends_posted].after <= flow.receives_done)
    post_send(flow);
  return flow.receives_posted + flow.sends_posted != before;
}

bool MpiComm::complete_receives(Flow& flow) {
  bool any = false;
  while (flow.receives_done < flow.receives_posted) {
    const std::int64_t slot = flow.receives_done % window;
    int done = 0, bytes = 0;
    MPI_Status status;
    check(MPI_Test(&flow.receive_requests[slot], &done, &status), "MPI_Test");
    if (!done) break;
    const Receive& r = flow.schedule.receives[flow.receives_done];
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes != r.bytes)
      ensure(false, fmt::format("{} '{}': {} bytes from rank {}, {} expected", name_of(flow.collective.kind),
                                flow.collective.label, bytes, r.peer, r.bytes));
    if (r.own != nullptr) {
      const DType type = flow.collective.dtype;
      const int threads = std::this_thread::get_id() == computes_ ? flow.threads : 1;
      add(type, r.into, r.own, flow.staging[slot], r.bytes / size_of(type), threads);
      free_staging_.push_back(flow.staging[slot]);
      --flow.staged;
    }
    ++flow.receives_done;
    any = true;
    post(flow); // the next message may go as soon as its terms are there
  }
  return any;
}

bool MpiComm::complete_sends(Flow& flow) {
  bool any = false;
  while (flow.sends_done < flow.sends_posted) {
    int done = 0;
    check(MPI_Test(&flow.send_requests[flow.sends_done % window], &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (!done) break;
    ++flow.sends_done;
    any = true;
  }
  return any;
}

bool MpiComm::advance(Flow& flow) {
  bool any = complete_receives(flow);
  any |= complete_sends(flow);
  any |= MpiLibrary::complete(flow.collective, flow.library);
  any |= post(flow);
  return any;
}

bool MpiComm::advance_all() {
  bool any = false;
  for (const auto& flow : flows_)
    if (!flow->done()) any |= advance(*flow);
  return any;
}

bool MpiComm::advance_everything() {
  const bool any = advance_all();
  return (meanwhile && meanwhile()) || any;
}

bool MpiComm::poll() {
  return advance_all();
}

MpiComm::FlowAt MpiComm::find(Token token) const {
  const auto found = std::find_if(flows_.begin(), flows_.end(), [&](const auto& flow) { return flow->token == token; });
  if (found == flows_.end()) ensure(false, fmt::format("wait for token {}, which is not under way", token));
  return found;
}

bool MpiComm::done(Token token) const {
  return (*find(token))->done();
}

void MpiComm::wait(Token token) {
  Flow& flow = **find(token);
  const double begin = seconds_now();
  double moved = begin;
  Backoff backoff;
  while (!flow.done()) {
    if (advance_everything()) {
      moved = seconds_now();
      backoff.reset();
    } else if (!flow.done()) {
      if (seconds_now() - moved > stall_seconds) report_stall(flow);
      backoff.pause();
    }
  }
  counters_.waiting_seconds += seconds_now() - begin;
  const auto found = flows_.begin() + (find(token) - flows_.cbegin()); // others may have come and gone meanwhile
  idle_.push_back(std::move(*found));
  flows_.erase(found);
}

void MpiComm::report_stall(const Flow& flow) const {
  std::set<int> senders, receivers;
  for (std::int64_t i = flow.receives_done; i < flow.receives_posted; ++i)
    senders.insert(flow.schedule.receives[i].peer);
  for (std::int64_t i = flow.sends_done; i < flow.sends_posted; ++i) receivers.insert(flow.schedule.sends[i].peer);
  const auto& group = flow.collective.group;
  std::string missing = fmt::format("any of the ranks {}", fmt::join(group, ", "));
  if (!receivers.empty()) missing = fmt::format("rank {} to take a message", fmt::join(receivers, ", "));
  if (!senders.empty()) missing = fmt::format("a message from rank {}", fmt::join(senders, ", "));
  fail_running("comm: {} '{}' stalled on rank {}, got no progress for {:g} s, expected {}. Look at what that rank last "
               "reported: it may have died, hang or lag behind",
               name_of(flow.collective.kind), flow.collective.label, rank_, stall_seconds, missing);
}

} // namespace soybean::comm
