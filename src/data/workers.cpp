#include "data/workers.hpp"

#include <utility>

namespace soybean::data {

Workers::Workers(int threads) {
  for (int worker = 1; worker < threads; ++worker) threads_.emplace_back([this, worker] { work(worker); });
}

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run(std::int64_t items, const std::function<void(std::int64_t, int)>& f) {
  {
    std::lock_guard lock(mutex_);
    f_ = &f;
    items_ = items;
    next_ = 0;
    busy_ = static_cast<int>(threads_.size());
    ++round_;
  }
  changed_.notify_all();
  take_items(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Workers::work(int worker) {
  std::int64_t round = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || round_ != round; });
      if (stop_) return;
      round = round_;
    }
    take_items(worker);
    {
      std::lock_guard lock(mutex_);
      --busy_;
    }
    changed_.notify_all();
  }
}

void Workers::take_items(int worker) {
  for (std::int64_t item = next_++; item < items_; item = next_++) {
    try {
      (*f_)(item, worker);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_ || item < failed_) {
        error_ = std::current_exception();
        failed_ = item;
      }
    }
  }
}

} // namespace soybean::data
