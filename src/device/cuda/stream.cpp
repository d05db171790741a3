// Queues, events, page-locked memory and recordings on the CUDA runtime. Queues do not wait for the default one; events
// carry no times. Device -1 is the host, which works as in a build without accelerators.
#include "device/stream.hpp"

#include "base/error.hpp"
#include "base/handles.hpp"
#include "device/cuda/check.hpp"

#include <cstring>
#include <new>

namespace soybean::device {

namespace {

using cuda::check;
using cuda::use;

cudaStream_t handle_of(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}

struct StreamTraits {
  using Handle = cudaStream_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudaStreamDestroy(handle)); }
};
struct EventTraits {
  using Handle = cudaEvent_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudaEventDestroy(handle)); }
};
struct GraphTraits {
  using Handle = cudaGraph_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudaGraphDestroy(handle)); }
};
struct GraphExecTraits {
  using Handle = cudaGraphExec_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudaGraphExecDestroy(handle)); }
};

/// Releases what a class of this header holds as a plain pointer.
template<class Traits>
void release(void* handle) noexcept {
  Unique<Traits>(static_cast<typename Traits::Handle>(handle)).reset();
}

constexpr std::align_val_t host_alignment{64};

} // namespace

Stream::Stream(int device) : device_(device) {
  if (device < 0) return;
  use(device);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  native_ = stream;
}

Stream::~Stream() {
  release<StreamTraits>(native_);
}

void Stream::copy(void* to, const void* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  const auto size = static_cast<std::size_t>(bytes);
  if (device_ < 0) {
    std::memcpy(to, from, size);
    return;
  }
  use(device_);
  check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, handle_of(*this)), "cudaMemcpyAsync");
}

void Stream::zero(void* data, std::int64_t bytes) {
  if (bytes <= 0) return;
  const auto size = static_cast<std::size_t>(bytes);
  if (device_ < 0) {
    std::memset(data, 0, size);
    return;
  }
  use(device_);
  check(cudaMemsetAsync(data, 0, size, handle_of(*this)), "cudaMemsetAsync");
}

void Stream::wait(const Event& event) {
  const auto marked = static_cast<cudaEvent_t>(event.native());
  if (marked == nullptr) return;
  if (device_ < 0) { // the host's work is done when its call returns, so it can not begin before
    event.synchronise();
    return;
  }
  use(device_);
  check(cudaStreamWaitEvent(handle_of(*this), marked, 0), "cudaStreamWaitEvent");
}

void Stream::synchronise() {
  if (device_ < 0) return;
  use(device_);
  check(cudaStreamSynchronize(handle_of(*this)), "cudaStreamSynchronize");
}

Event::Event(int device) : device_(device) {
  if (device < 0) return;
  use(device);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  native_ = event;
}

Event::~Event() {
  release<EventTraits>(native_);
}

void Event::record(Stream& stream) {
  ensure(stream.device() == device_, "an event marks work of its own accelerator");
  if (device_ < 0) return;
  use(device_);
  check(cudaEventRecord(static_cast<cudaEvent_t>(native_), handle_of(stream)), "cudaEventRecord");
}

bool Event::done() const {
  if (device_ < 0) return true;
  const cudaError_t code = cudaEventQuery(static_cast<cudaEvent_t>(native_));
  if (code == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(code, "cudaEventQuery");
  return true;
}

void Event::synchronise() const {
  if (device_ >= 0) check(cudaEventSynchronize(static_cast<cudaEvent_t>(native_)), "cudaEventSynchronize");
}

HostBuffer::HostBuffer(int device, std::int64_t bytes) : bytes_(bytes), device_(device) {
  ensure(bytes >= 0, "page-locked memory of negative size");
  if (bytes == 0) return;
  const auto size = static_cast<std::size_t>(bytes);
  if (device < 0) {
    data_ = static_cast<std::byte*>(::operator new(size, host_alignment));
    return;
  }
  use(device);
  void* data = nullptr;
  check(cudaHostAlloc(&data, size, cudaHostAllocDefault), "cudaHostAlloc");
  data_ = static_cast<std::byte*>(data);
}

HostBuffer::~HostBuffer() {
  if (data_ == nullptr) return;
  if (device_ < 0)
    ::operator delete(data_, host_alignment);
  else
    static_cast<void>(cudaFreeHost(data_));
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), device_(other.device_) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  return *this;
}

Recording::~Recording() {
  release<GraphExecTraits>(native_);
}

bool Recording::begin(Stream& stream) {
  if (stream.device() < 0) return false;
  use(stream.device());
  // Other threads (MPI's, a reader's) may go on as they like.
  const cudaError_t code = cudaStreamBeginCapture(handle_of(stream), cudaStreamCaptureModeThreadLocal);
  if (code == cudaErrorNotSupported || code == cudaErrorStreamCaptureUnsupported) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(code, "cudaStreamBeginCapture");
  return true;
}

void Recording::end(Stream& stream) {
  use(stream.device());
  cudaGraph_t captured = nullptr;
  const cudaError_t code = cudaStreamEndCapture(handle_of(stream), &captured);
  const Unique<GraphTraits> graph(captured);
  check(code, "cudaStreamEndCapture");
  cudaGraphExec_t launchable = nullptr;
  check(cudaGraphInstantiate(&launchable, graph.get(), 0), "cudaGraphInstantiate");
  release<GraphExecTraits>(std::exchange(native_, launchable));
}

void Recording::abandon(Stream& stream) noexcept {
  cudaGraph_t captured = nullptr;
  static_cast<void>(cudaStreamEndCapture(handle_of(stream), &captured));
  static_cast<void>(cudaGetLastError());
  release<GraphTraits>(captured);
}

void Recording::launch(Stream& stream) {
  ensure(native_ != nullptr, "nothing was recorded");
  use(stream.device());
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(native_), handle_of(stream)), "cudaGraphLaunch");
}

} // namespace soybean::device
