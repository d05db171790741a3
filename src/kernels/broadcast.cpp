// Functions of two operands, f32. n results: 12n bytes and n flops, less for operands that are repeated.
#include "kernels/broadcast.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"
#include "kernels/repeat.hpp"

namespace soybean::kernels {

namespace {

template<class F>
void repeated(const Exec& exec, const char* label, F f, const Call& call) {
  const TensorView &first = call.inputs[0], &second = call.inputs[1], &y = call.outputs[0];
  if (first.global == second.global) return binary(exec, label, f, first, second, y);
  for (const TensorView* view : {&first, &second, &y}) expect(*view, DType::f32);
  const Cells cells = cells_of(y);
  const Steps of_a = steps_of(first, y), of_b = steps_of(second, y);
  const float *a = first.as<const float>(), *b = second.as<const float>();
  float* to = y.as<float>();
  const std::int64_t positions = cells.positions, channels = cells.channels;
  device::rows_for(
      exec, cells.rows(), channels, label, KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        const std::int64_t sample = row / positions, position = row - sample * positions;
        const float left = a[of_a.at(sample, position, c)], right = b[of_b.at(sample, position, c)];
        to[row * channels + c] = f(left, right);
      });
}

} // namespace

void run_mul(const Exec& exec, const Call& call) {
  repeated(exec, "soybean::mul", formulas::Mul{}, call);
}
void run_add_repeated(const Exec& exec, const Call& call) {
  repeated(exec, "soybean::add_repeated", formulas::Add{}, call);
}
void run_sub(const Exec& exec, const Call& call) {
  repeated(exec, "soybean::sub", formulas::Sub{}, call);
}
void run_div(const Exec& exec, const Call& call) {
  repeated(exec, "soybean::div", formulas::Div{}, call);
}
void run_maximum(const Exec& exec, const Call& call) {
  repeated(exec, "soybean::maximum", formulas::Maximum{}, call);
}
void run_minimum(const Exec& exec, const Call& call) {
  repeated(exec, "soybean::minimum", formulas::Minimum{}, call);
}

void run_greater_grad(const Exec& exec, const Call& call) {
  const TensorView &above = call.inputs[0], &result = call.outputs[0];
  for (const TensorView& view : call.inputs) expect(view, DType::f32);
  expect_alike(above, result);
  const Cells cells = cells_of(result);
  const Steps of_p = steps_of(call.inputs[1], result), of_q = steps_of(call.inputs[2], result);
  const float *dy = above.as<const float>(), *p = call.inputs[1].as<const float>(),
              *q = call.inputs[2].as<const float>();
  float* to = result.as<float>();
  const std::int64_t positions = cells.positions, channels = cells.channels;
  device::rows_for(
      exec, cells.rows(), channels, "soybean::greater_grad", KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        const std::int64_t sample = row / positions, position = row - sample * positions, at = row * channels + c;
        to[at] = formulas::GreaterGrad{}(dy[at], p[of_p.at(sample, position, c)], q[of_q.at(sample, position, c)]);
      });
}

} // namespace soybean::kernels
