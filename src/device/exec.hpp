#pragma once
// What a kernel runs on: the host's threads or one accelerator, its queue of work and the vendor library's handles.
// Made by the runtime, passed to every kernel. Hides Kokkos start-up, the thread count and whether there is an
// accelerator.
#include <cstdint>
#include <memory>

namespace soybean::device {

class DnnContext; // the vendor library's engine, stream and primitive cache (device/dnn.hpp)
class Stream;     // device/stream.hpp

/// How the vendor library multiplies floats: in full, or, where the accelerator can, with operands rounded to TF32 (10
/// bits of mantissa) and sums in fp32. The host always does the former.
enum class Math : std::uint8_t { fp32, tf32 };

/// Memory that kernels of an Exec read and write is the host's or the accelerator's ("its memory"). Kernels are queued
/// in order; on the host each is done when its call returns.
class Exec {
public:
  /// On the host. Starts Kokkos if needed (once per process). threads >= 1: OpenMP threads of this rank.
  explicit Exec(int threads);
  /// On accelerator `device` of this process, 0 <= device < device_count(); loops on host data take `threads`.
  Exec(int threads, int device, Math math = Math::fp32);
  ~Exec();
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;

  bool on_device() const noexcept { return device_ >= 0; }
  int device() const noexcept { return device_; } ///< -1: the host
  int threads() const noexcept { return threads_; }
  Math math() const noexcept { return math_; } ///< of convolutions and matrix products
  DnnContext& dnn() const;                     ///< made when first asked for
  Stream& stream() const noexcept;
  void fence() const; ///< waits for all kernels

  struct Impl;
  Impl& impl() const noexcept { return *impl_; } ///< for src/device alone

private:
  int threads_;
  int device_ = -1;
  Math math_ = Math::fp32;
  std::unique_ptr<Impl> impl_;
};

} // namespace soybean::device
