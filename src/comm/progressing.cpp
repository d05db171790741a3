#include "comm/progressing.hpp"

#include "base/error.hpp"

#include <chrono>
#include <utility>

namespace soybean::comm {

namespace {

using Clock = std::chrono::steady_clock;

/// The caller's polls between kernels are no more frequent: each asks MPI for every transfer under way.
constexpr std::chrono::microseconds between_polls{150};
/// The thread looks when nobody has for so long. A socket's buffers hold what arrives meanwhile at some GB/s.
constexpr std::chrono::microseconds patience{500};

} // namespace

template<class... How>
std::unique_lock<std::mutex> ProgressingComm::turn(How... how) const {
  std::unique_lock lock(mutex_, how...);
  if (!lock) return lock; // the thread is at it
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  below_->stall_seconds = stall_seconds;
  return lock;
}

ProgressingComm::~ProgressingComm() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ProgressingComm::progress() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || (under_way_ > 0 && !error_); });
    if (ends_) return;
    const auto idle = Clock::now() - polled_;
    if (idle >= patience) look();
    lock.unlock();
    std::this_thread::sleep_for(idle >= patience ? patience : patience - idle);
    lock.lock();
  }
}

void ProgressingComm::look() {
  try {
    below_->poll();
  } catch (...) {
    error_ = std::current_exception();
  }
  polled_ = Clock::now();
}

void ProgressingComm::prepare(const std::vector<std::vector<int>>& groups) {
  const auto lock = turn();
  below_->prepare(groups);
}

Token ProgressingComm::start(const Collective& collective, const device::Exec& exec) {
  const auto lock = turn();
  const Token token = below_->start(collective, exec);
  if (!thread_.joinable()) thread_ = std::thread([this] { progress(); });
  if (under_way_++ == 0) changed_.notify_one();
  return token;
}

void ProgressingComm::wait(Token token) {
  const auto lock = turn();
  below_->wait(token);
  --under_way_;
}

bool ProgressingComm::done(Token token) const {
  const auto lock = turn();
  return below_->done(token);
}

void ProgressingComm::stalled(Token token) {
  const auto lock = turn();
  below_->stalled(token);
  throw Bug("a stall that is not reported");
}

bool ProgressingComm::poll() {
  const std::unique_lock lock = turn(std::try_to_lock);
  if (!lock || Clock::now() - polled_ < between_polls) return false;
  const bool moved = below_->poll();
  polled_ = Clock::now();
  return moved;
}

void ProgressingComm::abort() noexcept {
  const std::lock_guard lock(mutex_);
  below_->abort();
}

void ProgressingComm::barrier() {
  const auto lock = turn();
  below_->barrier();
}

void ProgressingComm::broadcast(void* data, std::int64_t bytes, int root) {
  const auto lock = turn();
  below_->broadcast(data, bytes, root);
}

std::vector<std::byte> ProgressingComm::gather_all(std::span<const std::byte> mine) {
  const auto lock = turn();
  return below_->gather_all(mine);
}

void ProgressingComm::send(const void* data, std::int64_t bytes, int peer, int tag) {
  const auto lock = turn();
  below_->send(data, bytes, peer, tag);
}

void ProgressingComm::receive(void* data, std::int64_t bytes, int peer, int tag) {
  const auto lock = turn();
  below_->receive(data, bytes, peer, tag);
}

Counters ProgressingComm::counters() const {
  const auto lock = turn();
  return below_->counters();
}

} // namespace soybean::comm
