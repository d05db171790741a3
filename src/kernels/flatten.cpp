// Flatten, f32. n elements: 8n bytes, or none in place.
#include "kernels/flatten.hpp"

#include "kernels/elementwise.hpp"

namespace soybean::kernels {

void run_flatten(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect(y, DType::f32);
  ensure(x.size() == y.size() && x.spatial == y.spatial, "flatten would change the physical order");
  copy(exec, "soybean::flatten", y.size(), x.as<const float>(), y.as<float>());
}

} // namespace soybean::kernels
