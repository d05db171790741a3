#pragma once
// What back ends on top of another Comm share: control traffic goes to the one below, and a loop that waits while all
// layers progress. Base of hierarchical, staged and nccl.
#include "comm/comm.hpp"
#include "comm/mpi_check.hpp"

#include <memory>
#include <utility>

namespace soybean::comm {

class LayeredComm : public Comm {
public:
  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  void barrier() override { below().barrier(); }
  void broadcast(void* data, std::int64_t bytes, int root) override { below().broadcast(data, bytes, root); }
  std::vector<std::byte> gather_all(std::span<const std::byte> mine) override { return below().gather_all(mine); }
  void send(const void* data, std::int64_t bytes, int peer, int tag) override { below().send(data, bytes, peer, tag); }
  void receive(void* data, std::int64_t bytes, int peer, int tag) override { below().receive(data, bytes, peer, tag); }

  void abort() noexcept override { below_->abort(); }

protected:
  explicit LayeredComm(std::unique_ptr<Comm> below) : below_(std::move(below)) { join(*below_); }

  /// The Comm below, under this one's watchdog.
  Comm& below() {
    below_->stall_seconds = stall_seconds;
    return *below_;
  }
  const Comm& below() const { return *below_; }

  /// Lets `lower` progress this Comm while it blocks.
  void join(Comm& lower) {
    lower.meanwhile = [this] {
      const bool any = poll();
      return (meanwhile && meanwhile()) || any;
    };
  }

  /// Polls until ready(); calls stalled() whenever stall_seconds pass in which nothing moved.
  template<class Ready, class Stalled>
  void poll_until(const Ready& ready, const Stalled& stalled) {
    const double begin = seconds_now();
    double moved = begin;
    Backoff backoff;
    while (!ready()) {
      bool any = poll();
      if (meanwhile) any |= meanwhile();
      if (any) {
        moved = seconds_now();
        backoff.reset();
      } else if (!ready()) {
        if (seconds_now() - moved > stall_seconds) stalled();
        backoff.pause();
      }
    }
    waiting_seconds_ += seconds_now() - begin;
  }

  double waiting_seconds_ = 0;

private:
  std::unique_ptr<Comm> below_;
};

} // namespace soybean::comm
