#pragma once
// The loops of element-wise f32 kernels, shared by pointwise, add, mul, flatten and dropout. All operands are loaded
// before anything is chosen, so that the loops vectorise; the result may be the memory of any operand.
#include "device/rows.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

/// to[i] = f(from[i]). Throws Bug unless both are the same block of f32.
template<class F>
void unary(const device::Exec& exec, const char* label, F f, const device::TensorView& from,
           const device::TensorView& to) {
  expect(from, DType::f32);
  expect_alike(from, to);
  const float* x = from.as<const float>();
  float* y = to.as<float>();
  device::flat_for(
      exec, to.size(), label, KOKKOS_LAMBDA(std::int64_t i) { y[i] = f(x[i]); });
}

/// to[i] = f(first[i], second[i]).
template<class F>
void binary(const device::Exec& exec, const char* label, F f, const device::TensorView& first,
            const device::TensorView& second, const device::TensorView& to) {
  expect(first, DType::f32);
  expect_alike(first, second);
  expect_alike(first, to);
  const float *a = first.as<const float>(), *b = second.as<const float>();
  float* y = to.as<float>();
  device::flat_for(
      exec, to.size(), label, KOKKOS_LAMBDA(std::int64_t i) {
        const float left = a[i], right = b[i];
        y[i] = f(left, right);
      });
}

/// Copies n elements unless they are the same memory.
inline void copy(const device::Exec& exec, const char* label, std::int64_t n, const float* from, float* to) {
  if (from == to) return;
  device::flat_for(
      exec, n, label, KOKKOS_LAMBDA(std::int64_t i) { to[i] = from[i]; });
}

/// The same in f64, plain loops, for the references.
namespace reference {

template<class F>
void unary(F f, const device::TensorView& from, const device::TensorView& to) {
  expect(from, DType::f64);
  expect_alike(from, to);
  const double* x = from.as<const double>();
  double* y = to.as<double>();
  for (std::int64_t i = 0; i < to.size(); ++i) y[i] = f(x[i]);
}

template<class F>
void binary(F f, const device::TensorView& first, const device::TensorView& second, const device::TensorView& to) {
  expect(first, DType::f64);
  expect_alike(first, second);
  expect_alike(first, to);
  const double *a = first.as<const double>(), *b = second.as<const double>();
  double* y = to.as<double>();
  for (std::int64_t i = 0; i < to.size(); ++i) y[i] = f(a[i], b[i]);
}

} // namespace reference

} // namespace soybean::kernels
