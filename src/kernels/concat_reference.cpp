// Concat and slices in f64 on the host, element by element in logical order.
#include "kernels/concat.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels::reference {

namespace {

/// f(logical position) for all elements of a block.
template<class F>
void each_position(const TensorView& view, F f) {
  Shape position(view.box.extents.size(), 0);
  for (std::int64_t n = 0; n < view.size(); ++n) {
    f(position);
    for (int d = static_cast<int>(position.size()) - 1; d >= 0 && ++position[d] == view.box.extents[d]; --d)
      position[d] = 0;
  }
}

/// The element of `whole` where a part that begins at `begin` has the one at `position`.
double& element(const TensorView& whole, Shape position, std::int64_t begin) {
  position[1] += begin;
  return whole.as<double>()[physical_offset(whole, position)];
}

} // namespace

void run_concat(const Exec&, const Call& call) {
  const TensorView& y = call.outputs[0];
  expect(y, DType::f64);
  std::int64_t begin = 0;
  for (const TensorView& x : call.inputs) {
    expect(x, DType::f64);
    each_position(x, [&](const Shape& p) { element(y, p, begin) = element(x, p, 0); });
    begin += x.extent(1);
  }
}

void run_slice(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f64);
  expect(y, DType::f64);
  const std::int64_t begin = call.node.attributes.integer("begin");
  each_position(y, [&](const Shape& p) { element(y, p, 0) = element(x, p, begin); });
}

void run_slice_grad(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  expect(dy, DType::f64);
  expect(dx, DType::f64);
  const std::int64_t begin = call.node.attributes.integer("begin");
  each_position(dx, [&](const Shape& p) { element(dx, p, 0) = 0; });
  each_position(dy, [&](const Shape& p) { element(dx, p, begin) = element(dy, p, 0); });
}

} // namespace soybean::kernels::reference
