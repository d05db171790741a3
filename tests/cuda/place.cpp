// Kernels of floats on the accelerator, references on the host.
#include "ops/place.hpp"

#include "cuda/accelerator.hpp"

namespace soybean::ops_test {

device::Exec exec_for(DType precision) {
  return precision == DType::f32 ? device::Exec(1, test::device_of(0)) : device::Exec(1);
}

void OnPlace::SetUp() {
  test::begin_accelerated();
}
void OnPlace::TearDown() {
  test::end_accelerated();
}

} // namespace soybean::ops_test
