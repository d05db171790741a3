#pragma once
// Mathematical functions for kernels, the same names whatever the Kokkos version (3.4 keeps them in
// Kokkos::Experimental). Every kernel takes its math from here.
#include <Kokkos_Core.hpp>
#include <Kokkos_MathematicalFunctions.hpp>

namespace soybean::device::math {

#if KOKKOS_VERSION < 30700
namespace source = Kokkos::Experimental;
#else
namespace source = Kokkos;
#endif

using source::cos;
using source::erf;
using source::exp;
using source::expm1;
using source::fabs;
using source::isfinite;
using source::isnan;
using source::log;
using source::log1p;
using source::pow;
using source::sin;
using source::sqrt;
using source::tanh;

template<class T>
KOKKOS_INLINE_FUNCTION T max(T a, T b) {
  return a < b ? b : a;
}
template<class T>
KOKKOS_INLINE_FUNCTION T min(T a, T b) {
  return b < a ? b : a;
}

} // namespace soybean::device::math
