#include "standins/state.hpp"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace soybean::standins {

namespace {

State initial() {
  State state;
  state.accelerators.resize(static_cast<std::size_t>(from_environment("SOYBEAN_STANDIN_ACCELERATORS", 1)));
  state.driver = from_environment("SOYBEAN_STANDIN_DRIVER", CUDART_VERSION);
  state.recording = from_environment("SOYBEAN_STANDIN_RECORDS", 0) != 0;
  return state;
}

std::mutex& notes() { // NCCL's abort is called from another thread
  static std::mutex mutex;
  return mutex;
}

} // namespace

State& state() {
  static State state = initial(); // the libraries that this stands for have one per process, too
  return state;
}

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

bool wait_until(const std::function<bool()>& ready, const char* call) {
  constexpr std::chrono::seconds patience(20);
  const auto begin = std::chrono::steady_clock::now();
  while (!ready()) {
    if (std::chrono::steady_clock::now() - begin > patience) {
      fault(std::string(call) + ": would never return");
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool enter(const char* call) {
  const std::lock_guard lock(notes());
  State& s = state();
  s.calls.push_back(call);
  if (s.failing_call == call) {
    s.failing_call.clear();
    return false;
  }
  if (s.calls_until_failure == 0) return true;
  --s.calls_until_failure;
  return s.calls_until_failure > 0;
}

void fault(const std::string& text) {
  const std::lock_guard lock(notes());
  state().faults.push_back(text);
}

double factor(float x, bool tf32) {
  if (!tf32 || !std::isfinite(x)) return x;
  auto bits = std::bit_cast<std::uint32_t>(x);
  bits += 0x0fff + (bits >> 13 & 1); // to the nearest, ties to even
  return std::bit_cast<float>(bits & ~std::uint32_t{0x1fff});
}

void reset() {
  State& s = state();
  State fresh;
  fresh.memory = std::move(s.memory);
  fresh.handles = std::move(s.handles);
  s = std::move(fresh);
}

Counts counts() {
  return state().counts;
}

std::vector<std::string> faults() {
  return state().faults;
}

std::map<std::string, int> alive() {
  std::map<std::string, int> result;
  for (const auto& [kind, count] : state().handles)
    if (count > 0) result[kind] = count;
  for (const auto& [address, memory] : state().memory) ++result[memory.page_locked ? "page-locked memory" : "memory"];
  return result;
}

const std::vector<std::string>& calls() {
  return state().calls;
}

void fail_call(std::int64_t k) {
  state().calls_until_failure = k;
}

void fail_call(const std::string& name) {
  state().failing_call = name;
}

void withdraw_call(const std::string& name) {
  state().not_offered.insert(name);
}

std::vector<const void*> streams_used() {
  return {state().streams_used.begin(), state().streams_used.end()};
}

void set_accelerators(const std::vector<Accelerator>& accelerators) {
  state().accelerators = accelerators;
}

void set_driver(int version) {
  state().driver = version;
}

void set_recording(bool possible) {
  state().recording = possible;
}

void set_first_workspace(std::int64_t bytes) {
  state().first_workspace = bytes;
}

void set_deterministic_algorithms(bool offered) {
  state().deterministic = offered;
}

std::string latest_math() {
  return state().math;
}

} // namespace soybean::standins
