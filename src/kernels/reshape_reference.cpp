// Reshape and permute in f64 on the host, element by element in logical order.
#include "kernels/layout.hpp"
#include "kernels/reshape.hpp"

namespace soybean::kernels::reference {

namespace {

void advance(Shape& position, const Shape& extents) {
  for (int d = static_cast<int>(extents.size()) - 1; d >= 0 && ++position[d] == extents[d]; --d) position[d] = 0;
}

} // namespace

void run_reshape(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f64);
  expect(y, DType::f64);
  ensure(x.size() == y.size() && x.extent(0) == y.extent(0), call.node.name + ": blocks of different elements");
  Shape from(x.box.extents.size(), 0), to(y.box.extents.size(), 0);
  for (std::int64_t n = 0; n < y.size(); ++n) {
    y.as<double>()[physical_offset(y, to)] = x.as<double>()[physical_offset(x, from)];
    advance(from, x.box.extents);
    advance(to, y.box.extents);
  }
}

void run_permute(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f64);
  expect(y, DType::f64);
  const auto& dims = call.node.attributes.integers("dims");
  Shape to(4, 0), from(4, 0);
  for (std::int64_t n = 0; n < y.size(); ++n) {
    for (std::size_t d = 0; d < 4; ++d) from[static_cast<std::size_t>(dims[d])] = to[d];
    y.as<double>()[physical_offset(y, to)] = x.as<double>()[physical_offset(x, from)];
    advance(to, y.box.extents);
  }
}

} // namespace soybean::kernels::reference
