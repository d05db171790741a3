// Functions of two operands in f64 on the host: element by element.
#include "kernels/broadcast.hpp"
#include "kernels/formulas.hpp"
#include "kernels/repeat.hpp"

namespace soybean::kernels::reference {

namespace {

/// f(index in the result, b, s, c) for every result.
template<class F>
void each(const TensorView& y, F f) {
  const Cells cells = cells_of(y);
  for (std::int64_t b = 0; b < cells.samples; ++b)
    for (std::int64_t s = 0; s < cells.positions; ++s)
      for (std::int64_t c = 0; c < cells.channels; ++c) f((b * cells.positions + s) * cells.channels + c, b, s, c);
}

template<class F>
void binary(F f, const Call& call) {
  const TensorView &first = call.inputs[0], &second = call.inputs[1], &y = call.outputs[0];
  for (const TensorView* view : {&first, &second, &y}) expect(*view, DType::f64);
  if (first.global == second.global) { // of any rank
    expect_alike(first, second);
    expect_alike(first, y);
    for (std::int64_t i = 0; i < y.size(); ++i) y.as<double>()[i] = f(first.as<double>()[i], second.as<double>()[i]);
    return;
  }
  const Steps of_a = steps_of(first, y), of_b = steps_of(second, y);
  each(y, [&](std::int64_t i, std::int64_t b, std::int64_t s, std::int64_t c) {
    y.as<double>()[i] = f(first.as<double>()[of_a.at(b, s, c)], second.as<double>()[of_b.at(b, s, c)]);
  });
}

} // namespace

void run_mul(const Exec&, const Call& call) {
  binary(formulas::Mul{}, call);
}
void run_add_repeated(const Exec&, const Call& call) {
  binary(formulas::Add{}, call);
}
void run_sub(const Exec&, const Call& call) {
  binary(formulas::Sub{}, call);
}
void run_div(const Exec&, const Call& call) {
  binary(formulas::Div{}, call);
}
void run_maximum(const Exec&, const Call& call) {
  binary(formulas::Maximum{}, call);
}
void run_minimum(const Exec&, const Call& call) {
  binary(formulas::Minimum{}, call);
}

void run_greater_grad(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &p = call.inputs[1], &q = call.inputs[2], &to = call.outputs[0];
  for (const TensorView& view : call.inputs) expect(view, DType::f64);
  expect_alike(dy, to);
  const Steps of_p = steps_of(p, to), of_q = steps_of(q, to);
  each(to, [&](std::int64_t i, std::int64_t b, std::int64_t s, std::int64_t c) {
    to.as<double>()[i] =
        formulas::GreaterGrad{}(dy.as<double>()[i], p.as<double>()[of_p.at(b, s, c)], q.as<double>()[of_q.at(b, s, c)]);
  });
}

} // namespace soybean::kernels::reference
