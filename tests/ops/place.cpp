#include "ops/place.hpp"

namespace soybean::ops_test {

device::Exec exec_for(DType) {
  return device::Exec(1);
}

void OnPlace::SetUp() {}
void OnPlace::TearDown() {}

} // namespace soybean::ops_test
