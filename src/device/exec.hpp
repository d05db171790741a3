#pragma once
// What a kernel runs on: its execution space, threads and the vendor library's handles. One per rank, made by the
// runtime, passed to every kernel. Hides Kokkos start-up and the thread count.
#include <memory>

namespace soybean::device {

class DnnContext; // the vendor library's engine, stream and primitive cache (device/dnn.hpp)

class Exec {
public:
  /// Starts Kokkos if needed (once per process) and the vendor library. threads >= 1: OpenMP threads of this rank.
  explicit Exec(int threads);
  ~Exec();
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;

  int threads() const noexcept { return threads_; }
  DnnContext& dnn() const noexcept { return *dnn_; }
  void fence() const; ///< waits for all kernels

private:
  int threads_;
  std::unique_ptr<DnnContext> dnn_;
};

} // namespace soybean::device
