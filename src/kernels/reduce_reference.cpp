// Sums and their inverse in f64 on the host: every element is added to, or read from, where it belongs.
#include "kernels/reduce.hpp"
#include "kernels/repeat.hpp"

namespace soybean::kernels::reference {

namespace {

/// f(index in the whole block, index in the smaller one).
template<class F>
void each(const TensorView& whole, const TensorView& small, F f) {
  const Cells cells = cells_of(whole);
  const Steps steps = steps_of(small, whole);
  for (std::int64_t b = 0; b < cells.samples; ++b)
    for (std::int64_t s = 0; s < cells.positions; ++s)
      for (std::int64_t c = 0; c < cells.channels; ++c)
        f((b * cells.positions + s) * cells.channels + c, steps.at(b, s, c));
}

void sum(const Call& call) {
  const TensorView &x = call.inputs.front(), &u = call.inputs.back(), &y = call.outputs[0];
  expect(x, DType::f64);
  expect(y, DType::f64);
  expect_alike(x, u);
  const bool product = call.inputs.size() > 1;
  for (std::int64_t i = 0; i < y.size(); ++i) y.as<double>()[i] = 0;
  each(x, y, [&](std::int64_t i, std::int64_t k) {
    y.as<double>()[k] += product ? x.as<double>()[i] * u.as<double>()[i] : x.as<double>()[i];
  });
  for (std::int64_t i = 0; i < y.size(); ++i) y.as<double>()[i] *= call.node.attributes.real("factor");
}

} // namespace

void run_reduce(const Exec&, const Call& call) {
  sum(call);
}
void run_reduce_batch(const Exec&, const Call& call) {
  sum(call);
}

void run_expand(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f64);
  expect(y, DType::f64);
  each(y, x, [&](std::int64_t i, std::int64_t k) {
    y.as<double>()[i] = call.node.attributes.real("factor") * x.as<double>()[k];
  });
}

} // namespace soybean::kernels::reference
