// Stand-in for the CUDA runtime: memory, streams, events and recordings. See standins.hpp.
#include "standins/state.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

using soybean::standins::Accelerator;
using soybean::standins::enqueue;
using soybean::standins::enter;
using soybean::standins::fault;
using soybean::standins::Flag;
using soybean::standins::Handles;
using soybean::standins::Memory;
using soybean::standins::state;
using soybean::standins::wait_until;

/// Work recorded from one stream and those that joined it.
struct CUgraph_st {
  std::vector<std::function<void()>> work;
  cudaStream_t origin = nullptr;
  bool invalid = false;
  std::set<cudaStream_t> joined;                 ///< streams in it beside the origin
  std::map<cudaStream_t, std::int64_t> unjoined; ///< position of a stream's latest work nobody has waited for
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> work;
};
struct CUstream_st {
  int device = 0;
  Flag still; ///< stands still until then
  cudaGraph_t recording = nullptr;
};
struct CUevent_st {
  int device = 0;
  Flag still;
  cudaGraph_t recording = nullptr; ///< it marks a point of
  cudaStream_t stream = nullptr;
  std::int64_t position = 0;
};

namespace {

Handles<CUstream_st>& streams() {
  static Handles<CUstream_st> handles("stream");
  return handles;
}
Handles<CUevent_st>& events() {
  static Handles<CUevent_st> handles("event");
  return handles;
}
Handles<CUgraph_st>& graphs() {
  static Handles<CUgraph_st> handles("graph");
  return handles;
}
Handles<CUgraphExec_st>& launchables() {
  static Handles<CUgraphExec_st> handles("launchable graph");
  return handles;
}

bool is_standing(const Flag& still) {
  return still != nullptr && !*still;
}

bool is_legacy(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy;
}

cudaError_t has_device() {
  if (state().driver / 1000 < CUDART_VERSION / 1000) return cudaErrorInsufficientDriver;
  return state().accelerators.empty() ? cudaErrorNoDevice : cudaSuccess;
}

const std::pair<const std::uintptr_t, Memory>* block_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return nullptr;
  --next;
  return address < next->first + static_cast<std::uintptr_t>(next->second.bytes) ? &*next : nullptr;
}

/// Notes an overrun; false: not memory the runtime knows.
bool is_known(const void* data, std::size_t bytes, const char* call, bool* page_locked) {
  const auto* block = block_of(data);
  if (block == nullptr) return false;
  const auto end = reinterpret_cast<std::uintptr_t>(data) + bytes;
  if (end > block->first + static_cast<std::uintptr_t>(block->second.bytes))
    fault(std::string(call) + ": beyond the end of a block of memory");
  *page_locked = block->second.page_locked;
  return true;
}

cudaError_t allocate(void** data, std::size_t bytes, bool page_locked) {
  *data = nullptr;
  ++state().counts.allocations;
  std::int64_t taken = 0;
  for (const auto& [address, memory] : state().memory)
    if (!memory.page_locked && memory.device == state().device) taken += memory.bytes;
  const auto size = static_cast<std::int64_t>(bytes);
  const std::int64_t room = state().accelerators.at(static_cast<std::size_t>(state().device)).memory;
  if (!page_locked && (size > room || taken > room - size)) return cudaErrorMemoryAllocation;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(memory, 0xff, bytes); // NaN
  state().memory[reinterpret_cast<std::uintptr_t>(memory)] = {size, state().device, page_locked};
  *data = memory;
  return cudaSuccess;
}

/// Waits for all queues of the accelerator that is set.
bool wait_for_all(const char* call) {
  bool done = true;
  streams().each([&](const CUstream_st& stream) {
    if (stream.device == state().device) done &= wait_until([&] { return !is_standing(stream.still); }, call);
  });
  return done;
}

cudaError_t release(void* data, bool page_locked, const char* call) {
  if (data == nullptr) return cudaSuccess;
  wait_for_all(call);
  const auto found = state().memory.find(reinterpret_cast<std::uintptr_t>(data));
  if (found == state().memory.end() || found->second.page_locked != page_locked) {
    fault(std::string(call) + ": not a block that was allocated");
    return cudaErrorInvalidValue;
  }
  std::memset(data, 0xff, static_cast<std::size_t>(found->second.bytes));
  state().memory.erase(found);
  std::free(data);
  return cudaSuccess;
}

/// The host waits.
cudaError_t wait_for(cudaStream_t stream, const char* call) {
  ++state().counts.host_waits;
  if (stream == nullptr) return wait_for_all(call) ? cudaSuccess : cudaErrorUnknown;
  if (is_legacy(stream)) return cudaSuccess;
  if (!streams().check(stream, call)) return cudaErrorInvalidResourceHandle;
  if (stream->recording == nullptr)
    return wait_until([&] { return !is_standing(stream->still); }, call) ? cudaSuccess : cudaErrorUnknown;
  stream->recording->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

} // namespace

namespace soybean::standins {

bool enqueue(cudaStream_t stream, const char* call, std::function<void()> work) {
  state().streams_used.insert(stream);
  if (is_legacy(stream)) {
    work();
    return true;
  }
  if (!streams().check(stream, call)) return false;
  if (stream->device != state().device) {
    fault(std::string(call) + ": the stream is of another accelerator than the one set");
    return false;
  }
  if (stream->recording == nullptr) {
    if (is_standing(stream->still)) return true;
    state().running = stream;
    work();
    state().running = nullptr;
    return true;
  }
  ++state().counts.recorded;
  stream->recording->work.push_back(std::move(work));
  if (stream != stream->recording->origin)
    stream->recording->unjoined[stream] = static_cast<std::int64_t>(stream->recording->work.size());
  return true;
}

void stand_still(const Flag& given_up) {
  state().running->still = given_up;
}

std::int64_t allocated_bytes() {
  std::int64_t bytes = 0;
  for (const auto& [address, memory] : state().memory)
    if (!memory.page_locked) bytes += memory.bytes;
  return bytes;
}

bool is_device_memory(const void* data, std::int64_t bytes, const char* call, const char* what) {
  const auto* block = block_of(data);
  const bool inside = block != nullptr && !block->second.page_locked &&
                      reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(bytes) <=
                          block->first + static_cast<std::uintptr_t>(block->second.bytes);
  if (!inside) fault(std::string(call) + ": " + what + " is not in the accelerator's memory");
  if (inside && block->second.device != state().device)
    fault(std::string(call) + ": " + what + " is in another accelerator's memory");
  return inside;
}

} // namespace soybean::standins

extern "C" {

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return "no error";
  case cudaErrorMemoryAllocation:
    return "out of memory";
  case cudaErrorInsufficientDriver:
    return "CUDA driver version is insufficient for CUDA runtime version";
  case cudaErrorStreamCaptureUnjoined:
    return "capture sequence contains a fork that was not joined to the primary stream";
  case cudaErrorStreamCaptureUnsupported:
    return "operation not permitted when stream is capturing";
  case cudaErrorStreamCaptureInvalidated:
    return "operation failed due to a previous error during capture";
  default:
    return "stand-in error";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (!enter(__func__)) return cudaErrorUnknown;
  *count = 0;
  if (const cudaError_t error = has_device()) return error;
  *count = static_cast<int>(state().accelerators.size());
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (const cudaError_t error = has_device()) return error;
  if (device < 0 || device >= static_cast<int>(state().accelerators.size())) return cudaErrorInvalidDevice;
  state().device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (const cudaError_t error = has_device()) return error;
  if (device < 0 || device >= static_cast<int>(state().accelerators.size())) return cudaErrorInvalidDevice;
  const Accelerator& accelerator = state().accelerators[static_cast<std::size_t>(device)];
  *properties = {};
  std::strncpy(properties->name, accelerator.name.c_str(), sizeof(properties->name) - 1);
  for (int i = 0; i < 16; ++i) properties->uuid.bytes[i] = static_cast<char>(16 * device + i);
  properties->major = accelerator.major;
  properties->minor = accelerator.minor;
  properties->totalGlobalMem = static_cast<std::size_t>(accelerator.memory);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (attribute != cudaDevAttrPageableMemoryAccess) return cudaErrorInvalidValue;
  *value = state().accelerators.at(static_cast<std::size_t>(device)).reads_pageable_memory ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (!enter(__func__)) return cudaErrorUnknown;
  std::int64_t taken = 0;
  for (const auto& [address, memory] : state().memory)
    if (!memory.page_locked && memory.device == state().device) taken += memory.bytes;
  const std::int64_t memory = state().accelerators.at(static_cast<std::size_t>(state().device)).memory;
  *free = static_cast<std::size_t>(memory - taken);
  *total = static_cast<std::size_t>(memory);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (!enter(__func__)) return cudaErrorUnknown;
  *version = state().driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!enter(__func__)) return cudaErrorUnknown;
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return enter(__func__) ? allocate(data, bytes, false) : cudaErrorUnknown;
}

cudaError_t cudaFree(void* data) {
  static_cast<void>(enter(__func__)); // what fails to be released is released all the same
  return release(data, false, __func__);
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned int) {
  return enter(__func__) ? allocate(data, bytes, true) : cudaErrorUnknown;
}

cudaError_t cudaFreeHost(void* data) {
  static_cast<void>(enter(__func__));
  return release(data, true, __func__);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  if (!enter(__func__)) return cudaErrorUnknown;
  *attributes = {};
  const auto* block = block_of(data);
  attributes->type = block == nullptr            ? cudaMemoryTypeUnregistered
                     : block->second.page_locked ? cudaMemoryTypeHost
                                                 : cudaMemoryTypeDevice;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (kind != cudaMemcpyDefault) fault("cudaMemcpyAsync: a direction given");
  bool locked = false;
  for (const void* side : {static_cast<const void*>(to), from})
    if (!is_known(side, bytes, "cudaMemcpyAsync", &locked)) ++state().counts.pageable_copies;
  const bool done = enqueue(stream, __func__, [=] { std::memcpy(to, from, bytes); });
  return done ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (!soybean::standins::is_device_memory(data, static_cast<std::int64_t>(bytes), __func__, "what is set"))
    return cudaErrorInvalidValue;
  const bool done = enqueue(stream, __func__, [=] { std::memset(data, value, bytes); });
  return done ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (flags != cudaStreamNonBlocking) fault("cudaStreamCreateWithFlags: a stream that waits for the default one");
  *stream = streams().make();
  (*stream)->device = state().device;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  static_cast<void>(enter(__func__));
  if (streams().check(stream, __func__) && stream->recording != nullptr && stream->recording->origin == stream)
    graphs().destroy(stream->recording, __func__); // what was recorded so far is nobody's
  return streams().destroy(stream, __func__) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return enter(__func__) ? wait_for(stream, __func__) : cudaErrorUnknown;
}

cudaError_t cudaDeviceSynchronize() {
  return enter(__func__) ? wait_for(nullptr, __func__) : cudaErrorUnknown;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (!streams().check(stream, __func__) || !events().check(event, __func__)) return cudaErrorInvalidResourceHandle;
  state().streams_used.insert(stream);
  if (is_standing(event->still) && !is_standing(stream->still)) stream->still = event->still;
  if (event->recording == nullptr) return cudaSuccess;
  if (stream->recording == nullptr) {
    stream->recording = event->recording;
    stream->recording->joined.insert(stream);
  }
  const auto other = event->recording->unjoined.find(event->stream);
  if (stream != event->stream && other != event->recording->unjoined.end() && other->second <= event->position) {
    event->recording->unjoined.erase(other);
    if (stream != event->recording->origin) event->recording->unjoined[stream] = event->position;
  }
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (flags != cudaEventDisableTiming) fault("cudaEventCreateWithFlags: an event with times");
  *event = events().make();
  (*event)->device = state().device;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  static_cast<void>(enter(__func__));
  return events().destroy(event, __func__) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (!events().check(event, __func__) || !streams().check(stream, __func__)) return cudaErrorInvalidResourceHandle;
  if (event->device != stream->device) {
    fault("cudaEventRecord: event and stream are of different accelerators");
    return cudaErrorInvalidResourceHandle;
  }
  event->still = stream->recording == nullptr ? stream->still : nullptr;
  event->recording = stream->recording;
  event->stream = stream;
  event->position = stream->recording != nullptr ? static_cast<std::int64_t>(stream->recording->work.size()) : 0;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (!events().check(event, __func__)) return cudaErrorInvalidResourceHandle;
  if (event->recording != nullptr) return cudaErrorCapturedEvent;
  return is_standing(event->still) ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (!enter(__func__)) return cudaErrorUnknown;
  ++state().counts.host_waits;
  if (!events().check(event, __func__)) return cudaErrorInvalidResourceHandle;
  return wait_until([&] { return !is_standing(event->still); }, __func__) ? cudaSuccess : cudaErrorUnknown;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (!streams().check(stream, __func__)) return cudaErrorInvalidResourceHandle;
  if (!state().recording) return cudaErrorNotSupported;
  stream->recording = graphs().make();
  stream->recording->origin = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!streams().check(stream, __func__)) return cudaErrorInvalidResourceHandle;
  const bool entered = enter(__func__);
  cudaGraph_t recording = std::exchange(stream->recording, nullptr);
  if (recording == nullptr) {
    fault("cudaStreamEndCapture: the stream does not record");
    return cudaErrorIllegalState;
  }
  const bool joined = recording->unjoined.empty();
  for (cudaStream_t other : recording->joined) other->recording = nullptr;
  if (entered && joined && !recording->invalid) {
    *graph = recording;
    return cudaSuccess;
  }
  const bool invalid = recording->invalid;
  graphs().destroy(recording, __func__);
  return !entered ? cudaErrorUnknown : invalid ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* launchable, cudaGraph_t graph, unsigned long long) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (!graphs().check(graph, __func__)) return cudaErrorInvalidValue;
  *launchable = launchables().make();
  (*launchable)->work = graph->work;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  static_cast<void>(enter(__func__));
  return graphs().destroy(graph, __func__) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t launchable) {
  static_cast<void>(enter(__func__));
  return launchables().destroy(launchable, __func__) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t launchable, cudaStream_t stream) {
  if (!enter(__func__)) return cudaErrorUnknown;
  if (!launchables().check(launchable, __func__)) return cudaErrorInvalidValue;
  ++state().counts.launches;
  const bool done = enqueue(stream, __func__, [launchable, stream] {
    for (const auto& work : launchable->work)
      if (!is_standing(stream->still)) work();
  });
  return done ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

} // extern "C"
