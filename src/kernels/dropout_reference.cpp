// Dropout in f64 on the host: walks the block in logical order and computes each element's index from its position.
#include "kernels/dropout.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels::reference {

namespace {

std::int64_t global_index(const TensorView& view, const Shape& position) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < position.size(); ++d) index = index * view.global[d] + view.box.offsets[d] + position[d];
  return index;
}

} // namespace

void run_dropout(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &hyper = call.inputs[1], &y = call.outputs[0];
  expect(x, DType::f64);
  expect_alike(x, y);
  expect(hyper, DType::f64);
  Dropout dropout = make_dropout(call.node);
  dropout.stream.step = static_cast<std::uint64_t>(hyper.as<double>()[1]);
  const std::int64_t first = first_element(call.node, x);
  const Shape& e = x.box.extents;
  Shape position(e.size(), 0);
  for (std::int64_t n = 0; n < x.size(); ++n) {
    const std::int64_t i = physical_offset(x, position);
    const double value = x.as<double>()[i];
    const bool keeps = philox::uniform(dropout.stream, first + global_index(x, position)) >= dropout.rate;
    y.as<double>()[i] = !call.training ? value : keeps ? value / (1 - dropout.rate) : 0;
    for (int d = static_cast<int>(e.size()) - 1; d >= 0 && ++position[d] == e[d]; --d) position[d] = 0;
  }
}

void run_dropout_grad(const Exec& exec, const Call& call) {
  reference::run_dropout(exec, call);
}

} // namespace soybean::kernels::reference
