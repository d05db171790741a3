#include "standins/state.hpp"

#include <bit>
#include <cmath>

namespace soybean::standins {

State& state() {
  static State state; // the libraries that this stands for have one per process, too
  return state;
}

bool enter(const char* call) {
  State& s = state();
  s.calls.push_back(call);
  if (s.failing_call == call) {
    s.failing_call.clear();
    return false;
  }
  return s.calls_until_failure == 0 || --s.calls_until_failure > 0;
}

void fault(const std::string& text) {
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

std::vector<const void*> streams_used() {
  return {state().streams_used.begin(), state().streams_used.end()};
}

void set_accelerators(const std::vector<Accelerator>& accelerators) {
  state().accelerators = accelerators;
}

void set_driver(bool present) {
  state().driver = present;
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
