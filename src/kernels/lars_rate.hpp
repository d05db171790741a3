#pragma once
// What the learning rate of a layer is multiplied with, from the norms of whole tensors: shared by the f32 kernels and
// f64 references of LARS and LAMB.
#include "device/math.hpp"

namespace soybean::kernels {

/// LARS: trust·‖w‖/(‖g‖ + λ‖w‖ + ε), g being clipped by `factor` (nullptr: it is not); 1 where ‖w‖ is 0, as weights
/// that begin at 0 would stay there, or the denominator is. A gradient of 0 is nothing special: one that is 0 but for
/// rounding must have the same rate. `norms`: squares of both, g's before clipping; nullptr: 1.
struct LarsRate {
  double trust, decay, eps;
  const double *norms, *factor;
  KOKKOS_INLINE_FUNCTION double operator()() const {
    if (norms == nullptr) return 1;
    const double w = device::math::sqrt(norms[0]);
    const double g = device::math::sqrt(norms[1]) * (factor == nullptr ? 1.0 : *factor);
    const double whole = g + decay * w + eps;
    return w > 0 && whole > 0 ? trust * w / whole : 1.0;
  }
};

/// LAMB: ‖w‖/‖r‖ for the direction r; 1 where a norm is 0. nullptr: 1.
struct LambRate {
  const double* norms;
  KOKKOS_INLINE_FUNCTION double operator()() const {
    if (norms == nullptr) return 1;
    return norms[0] > 0 && norms[1] > 0 ? device::math::sqrt(norms[0]) / device::math::sqrt(norms[1]) : 1.0;
  }
};

} // namespace soybean::kernels
