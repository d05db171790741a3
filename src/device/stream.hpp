#pragma once
// Queues of work on an accelerator, events between them, page-locked memory, and whole steps recorded to be launched at
// once. On the host a queue does its work at once and events are always done. One source per vendor
// (host/stream.cpp, cuda/stream.cpp). Called by comm, runtime and data feeding.
#include <cstddef>
#include <cstdint>
#include <utility>

namespace soybean::device {

class Event;

class Stream {
public:
  Stream() = default;          ///< the host's
  explicit Stream(int device); ///< a new queue of that accelerator; -1: the host's
  ~Stream();                   // NOLINT(performance-trivially-destructible): on CUDA it has work to do
  Stream(Stream&& other) noexcept
      : native_(std::exchange(other.native_, nullptr)), device_(std::exchange(other.device_, -1)) {}
  Stream& operator=(Stream&&) = delete;

  int device() const noexcept { return device_; }
  void* native() const noexcept { return native_; } ///< the vendor's handle (cudaStream_t)

  /// Copies between any two memories that do not overlap. Asynchronous where the host's side is page-locked or absent.
  void copy(void* to, const void* from, std::int64_t bytes);
  void zero(void* data, std::int64_t bytes);
  /// What is queued from now on waits until what the event marks is done; the host goes on.
  void wait(const Event& event);
  void synchronise(); ///< the host waits for all that is queued

private:
  void* native_ = nullptr;
  int device_ = -1;
};

/// Marks a point in a stream's work.
class Event {
public:
  explicit Event(int device); ///< -1: the host's
  ~Event();                   // NOLINT(performance-trivially-destructible): on CUDA it has work to do
  Event(Event&& other) noexcept
      : native_(std::exchange(other.native_, nullptr)), device_(std::exchange(other.device_, -1)) {}
  Event& operator=(Event&&) = delete;

  void record(Stream& stream);
  bool done() const;        ///< all that was queued before `record` is done; true if never recorded
  void synchronise() const; ///< the host waits for that
  void* native() const noexcept { return native_; }

private:
  void* native_ = nullptr;
  int device_ = -1;
};

/// Page-locked host memory, which an accelerator copies from and to beside its kernels; plain memory on the host.
class HostBuffer {
public:
  HostBuffer() = default;
  HostBuffer(int device, std::int64_t bytes);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;

  std::byte* data() const noexcept { return data_; }
  std::int64_t bytes() const noexcept { return bytes_; }

private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  int device_ = -1;
};

/// A sequence of queued work, recorded once and launched as a whole. On the host nothing can be recorded.
class Recording {
public:
  Recording() = default;
  ~Recording(); // NOLINT(performance-trivially-destructible): on CUDA it has work to do
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Work queued on the stream (and on streams that wait for its events and that it waits for again) is recorded, not
  /// run, until end() or, where an error came between, abandon(). begin returns false where that is impossible.
  bool begin(Stream& stream);
  void end(Stream& stream);
  void abandon(Stream& stream) noexcept;
  bool ready() const noexcept { return native_ != nullptr; }
  void launch(Stream& stream);

private:
  void* native_ = nullptr;
};

} // namespace soybean::device
