#pragma once
// Counts allocations by `new` in tests that link allocations.cpp, for "steady state allocates nothing".

namespace soybean::test {

int allocations_so_far();

/// Runs work() and returns how often operator new was called meanwhile, by any thread.
template<class Work>
int allocations_of(const Work& work) {
  const int before = allocations_so_far();
  work();
  return allocations_so_far() - before;
}

} // namespace soybean::test
