#pragma once
// A few threads that share out the items of a loop. Used by the loader; one loop at a time.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace soybean::data {

class Workers {
public:
  /// `threads` >= 1, the caller of run() among them.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int count() const { return static_cast<int>(threads_.size()) + 1; }
  /// Calls f(item, worker) for each item in [0, items), each on some worker in [0, count()), and returns when all are
  /// done. Of several exceptions the one of the lowest item is thrown.
  void run(std::int64_t items, const std::function<void(std::int64_t, int)>& f);

private:
  void work(int worker);
  void take_items(int worker);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(std::int64_t, int)>* f_ = nullptr;
  std::int64_t items_ = 0;
  std::atomic<std::int64_t> next_{0};
  std::int64_t round_ = 0; ///< of loops; a new one wakes the threads
  int busy_ = 0;           ///< threads still in the loop
  bool stop_ = false;
  std::int64_t failed_ = 0; ///< the item error_ is of
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

} // namespace soybean::data
