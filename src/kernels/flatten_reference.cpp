// Flatten in f64 on the host, by logical position: element [b, c, h, w] becomes [b, (c·H + h)·W + w].
#include "kernels/flatten.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels::reference {

void run_flatten(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f64);
  expect(y, DType::f64);
  ensure(x.size() == y.size() && x.spatial == y.spatial, "flatten would change the physical order");
  if (x.data == y.data) return;
  Shape from(x.box.extents.size(), 0), to(y.box.extents.size(), 0);
  const auto advance = [](Shape& position, const Shape& extents) {
    for (int d = static_cast<int>(extents.size()) - 1; d >= 0 && ++position[d] == extents[d]; --d) position[d] = 0;
  };
  for (std::int64_t n = 0; n < y.size(); ++n) {
    y.as<double>()[physical_offset(y, to)] = x.as<double>()[physical_offset(x, from)];
    advance(from, x.box.extents);
    advance(to, y.box.extents);
  }
}

} // namespace soybean::kernels::reference
