#include "comm/progressing.hpp"

#include "base/error.hpp"

#include <chrono>
#include <utility>

namespace soybean::comm {

namespace {

/// Between two looks of the thread. A socket's buffers hold what arrives meanwhile at some GB/s.
constexpr std::chrono::microseconds rest{250};

} // namespace

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
    try {
      below_->poll();
    } catch (...) {
      error_ = std::current_exception();
    }
    lock.unlock();
    std::this_thread::sleep_for(rest);
    lock.lock();
  }
}

std::unique_lock<std::mutex> ProgressingComm::turn() const {
  std::unique_lock lock(mutex_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  below_->stall_seconds = stall_seconds;
  return lock;
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
  const auto lock = turn();
  return below_->poll();
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
