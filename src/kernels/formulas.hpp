#pragma once
// The formulas of one element that f32 kernels and f64 references share, each written once: activations, sums and
// products, the optimizer's step.
#include "device/math.hpp"

namespace soybean::kernels::formulas {

// NaN passes through, as in PyTorch.
struct Relu {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return x <= T(0) ? T(0) : x;
  }
};
struct Tanh {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return device::math::tanh(x);
  }
};
struct Sigmoid {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return T(1) / (T(1) + device::math::exp(-x));
  }
};

// dx from dy and the activation's result y.
struct ReluGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T y) const {
    return y <= T(0) ? T(0) : dy;
  }
};
struct TanhGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T y) const {
    return dy * (T(1) - y * y);
  }
};
struct SigmoidGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T y) const {
    return dy * ((T(1) - y) * y);
  }
};

struct Add {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return a + b;
  }
};
struct Mul {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return a * b;
  }
};

/// Coefficients of torch.optim.SGD: g ← grad + decay·w; v ← momentum·v + g; step = from_g·g + from_v·v, which is v, or
/// g + momentum·v with Nesterov; w ← w − lr·step. Without momentum the step is g.
template<class T>
struct Sgd {
  T momentum = 0, decay = 0, from_g = 0, from_v = 1;

  KOKKOS_INLINE_FUNCTION T gradient(T grad, T w) const { return grad + decay * w; }
  KOKKOS_INLINE_FUNCTION T velocity(T v, T g) const { return momentum * v + g; }
  KOKKOS_INLINE_FUNCTION T step(T g, T v) const { return from_g * g + from_v * v; }
};

template<class T>
Sgd<T> make_sgd(double momentum, double decay, bool nesterov) {
  return {T(momentum), T(decay), nesterov ? T(1) : T(0), nesterov ? T(momentum) : T(1)};
}

} // namespace soybean::kernels::formulas
