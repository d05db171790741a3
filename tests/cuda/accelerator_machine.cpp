// SOYBEAN_TEST_COMM: parallel.comm of the ranks, "auto" without it.
#include "cuda/accelerator.hpp"

#include "base/error.hpp"
#include "device/devices.hpp"

#include <cstdlib>

namespace soybean::test {

int device_of(int local_rank) {
  const int count = device::device_count();
  if (count == 0) fail("tests: this machine, got no GPU expected one. run ctest -LE gpu here");
  return local_rank % count;
}

std::string comm_name() {
  const char* name = std::getenv("SOYBEAN_TEST_COMM");
  return name == nullptr ? "auto" : name;
}

void begin_accelerated() {}
void end_accelerated() {}

} // namespace soybean::test
