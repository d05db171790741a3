#pragma once
// What the stand-ins share among themselves. Included by them alone.
#include "standins/standins.hpp"

#include <cuda_runtime_api.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace soybean::standins {

struct Memory {
  std::int64_t bytes = 0;
  int device = 0;
  bool page_locked = false; ///< the host's
};

/// Set when work that a queue stands still for is given up, by whatever thread.
using Flag = std::shared_ptr<std::atomic<bool>>;

struct State {
  Counts counts;
  std::vector<std::string> faults, calls;
  std::int64_t calls_until_failure = 0;
  std::string failing_call;
  std::set<std::string> not_offered;
  std::vector<Accelerator> accelerators{Accelerator{}};
  int driver = CUDART_VERSION; ///< its CUDA; 0: there is none
  bool recording = false;
  std::int64_t first_workspace = 4096;
  bool deterministic = true;
  int device = 0; ///< set by cudaSetDevice
  std::map<std::uintptr_t, Memory> memory;
  std::set<const void*> streams_used;
  std::string math;
  std::map<std::string, int> handles; ///< alive, by kind
  cudaStream_t running = nullptr;     ///< the queue whose work is being done
};
State& state();

/// An environment variable's number: programs on stand-ins are told by these what tests set by functions.
int from_environment(const char* name, int otherwise);

/// Called from work: its queue stands still, with what is queued there or waits for its events, until the flag is set.
/// What would have been done meanwhile never is.
void stand_still(const Flag& given_up);

/// Waits for ready() as a call does that returns only then, a test's patience long; then it is a fault of `call`.
bool wait_until(const std::function<bool()>& ready, const char* call);

/// Notes the call; false: it shall fail.
bool enter(const char* call);
void fault(const std::string& text);

/// All handles of a kind, the destroyed ones too, so that their use is recognised.
template<class T>
class Handles {
public:
  explicit Handles(const char* kind) : kind_(kind) {}

  T* make() {
    auto owned = std::make_unique<T>();
    T* handle = owned.get();
    alive_[handle] = std::move(owned);
    ++state().handles[kind_];
    return handle;
  }
  /// True if it is one of ours and alive; otherwise that is a fault of `call`.
  bool check(T* handle, const char* call) const {
    if (alive_.contains(handle)) return true;
    fault(std::string(call) + (dead_.contains(handle) ? ": a destroyed " : ": no ") + kind_);
    return false;
  }
  /// f(handle) of those alive.
  template<class F>
  void each(const F& f) const {
    for (const auto& [handle, owned] : alive_) f(*owned);
  }
  bool destroy(T* handle, const char* call) {
    if (!check(handle, call)) return false;
    *handle = {}; // with what it keeps alive
    dead_[handle] = std::move(alive_[handle]);
    alive_.erase(handle);
    --state().handles[kind_];
    return true;
  }

private:
  const char* kind_;
  std::map<T*, std::unique_ptr<T>> alive_, dead_;
};

/// A factor of a product: as it is, or rounded to TF32's 10 bits of mantissa.
double factor(float x, bool tf32);

/// Does the work, or puts it into the recording the stream is in. False, and a fault, when the stream is not alive or
/// is another accelerator's than the one set.
bool enqueue(cudaStream_t stream, const char* call, std::function<void()> work);

/// True if [data, data + bytes) lies in one block of the accelerator's memory; otherwise that is a fault of `call`.
bool is_device_memory(const void* data, std::int64_t bytes, const char* call, const char* what);

} // namespace soybean::standins
