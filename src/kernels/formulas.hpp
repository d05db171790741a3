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
struct Relu6 {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return x <= T(0) ? T(0) : x >= T(6) ? T(6) : x;
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

template<class T>
struct LeakyRelu {
  T slope;
  KOKKOS_INLINE_FUNCTION T operator()(T x) const { return x < T(0) ? slope * x : x; }
};
template<class T>
struct Elu {
  T alpha;
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    const T below = alpha * device::math::expm1(x);
    return x < T(0) ? below : x;
  }
};
struct Silu {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return x / (T(1) + device::math::exp(-x));
  }
};
struct HardSwish { // x·min(max(x + 3, 0), 6)/6
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return x * device::math::min(device::math::max(x + T(3), T(0)), T(6)) / T(6);
  }
};
struct Gelu { // x·Φ(x), Φ the normal distribution
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    constexpr T root_half = T(0.70710678118654752440);
    return T(0.5) * x * (T(1) + device::math::erf(x * root_half));
  }
};
/// What GELU's tanh approximation multiplies x with, (1 + tanh(u))/2 = 1/(1 + exp(−2u)), u = √(2/π)·(x + 0.044715·x³):
/// exponentials vectorise, and nothing cancels.
template<class T>
struct GeluShare {
  static constexpr T factor = T(2 * 0.79788456080286535588), cubic = T(0.044715);
  KOKKOS_INLINE_FUNCTION static T value(T x) {
    return T(1) / (T(1) + device::math::exp(-factor * (x + cubic * x * x * x)));
  }
  KOKKOS_INLINE_FUNCTION static T slope(T x) { return factor * (T(1) + T(3) * cubic * x * x); } ///< of 2u
};
struct GeluTanh {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return x * GeluShare<T>::value(x);
  }
};

// dx from dy and the activation's result y.
template<class T>
struct LeakyReluGrad { // y has x's sign, since slope >= 0
  T slope;
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T y) const { return y <= T(0) ? slope * dy : dy; }
};
template<class T>
struct EluGrad { // alpha·exp(x) = y + alpha
  T alpha;
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T y) const {
    const T below = dy * (y + alpha);
    return y < T(0) ? below : dy;
  }
};
// dx from dy and x.
struct SiluGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T x) const {
    const T s = T(1) / (T(1) + device::math::exp(-x));
    return dy * s * (T(1) + x * (T(1) - s));
  }
};
struct HardSwishGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T x) const {
    const T inner = dy * (x / T(3) + T(0.5));
    return x < T(-3) ? T(0) : x <= T(3) ? inner : dy;
  }
};
struct GeluGrad { // Φ(x) + x·φ(x)
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T x) const {
    constexpr T root_half = T(0.70710678118654752440), density = T(0.39894228040143267794);
    const T below = T(0.5) * (T(1) + device::math::erf(x * root_half));
    return dy * (below + x * density * device::math::exp(T(-0.5) * x * x));
  }
};
struct GeluTanhGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T x) const {
    const T share = GeluShare<T>::value(x);
    return dy * (share + x * share * (T(1) - share) * GeluShare<T>::slope(x));
  }
};

// dx from dy and the activation's result y.
struct ReluGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T y) const {
    return y <= T(0) ? T(0) : dy;
  }
};
struct Relu6Grad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T y) const {
    return (y <= T(0)) | (y >= T(6)) ? T(0) : dy;
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
struct Sub {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return a - b;
  }
};
struct Div {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return a / b;
  }
};
struct Maximum { // NaN passes through, as in PyTorch
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return (a > b) | (a != a) ? a : b;
  }
};
struct Minimum {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return (a < b) | (a != a) ? a : b;
  }
};
/// The share of a maximum's gradient that its operand p has beside q.
struct GreaterGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T p, T q) const {
    return p > q ? dy : p == q ? T(0.5) * dy : T(0);
  }
};

// Functions of one operand with constants.
template<class T>
struct Scale {
  T factor;
  KOKKOS_INLINE_FUNCTION T operator()(T x) const { return factor * x; }
};
template<class T>
struct Shift {
  T by;
  KOKKOS_INLINE_FUNCTION T operator()(T x) const { return x + by; }
};
template<class T>
struct Pow {
  T exponent;
  KOKKOS_INLINE_FUNCTION T operator()(T x) const { return device::math::pow(x, exponent); }
};
template<class T>
struct PowGrad {
  T exponent;
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T x) const {
    return exponent == T(0) ? T(0) : dy * exponent * device::math::pow(x, exponent - T(1));
  }
};
struct Square {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return x * x;
  }
};
struct SquareGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T x) const {
    return dy * (T(2) * x);
  }
};
struct Sqrt {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return device::math::sqrt(x);
  }
};
struct SqrtGrad { // from the result
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T y) const {
    return dy / (T(2) * y);
  }
};
struct Exp {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return device::math::exp(x);
  }
};
struct Log {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return device::math::log(x);
  }
};
struct Abs {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T x) const {
    return device::math::fabs(x);
  }
};
struct AbsGrad {
  template<class T>
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T x) const {
    return x > T(0) ? dy : x < T(0) ? -dy : T(0) * x;
  }
};
template<class T>
struct Clamp { // NaN passes through
  T low, high;
  KOKKOS_INLINE_FUNCTION T operator()(T x) const { return x < low ? low : x > high ? high : x; }
};
template<class T>
struct ClampGrad {
  T low, high;
  KOKKOS_INLINE_FUNCTION T operator()(T dy, T x) const { return (x < low) | (x > high) ? T(0) : dy; }
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
