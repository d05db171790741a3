// LAMB, f32. n weights: direction 28n bytes and about 12n flops, a root and a quotient; step 12n bytes and 2n flops.
// Results may be the memory of gradient and moments, and of w.
#include "kernels/lamb.hpp"

#include "device/math.hpp"
#include "kernels/lars_rate.hpp"
#include "kernels/update.hpp"

namespace soybean::kernels {

namespace {

struct Direction {
  float decay, taken1, kept2, taken2, eps;
  const double* hyper;
  const float *m, *v;
  float *m_next, *v_next;

  KOKKOS_INLINE_FUNCTION float operator()(std::int64_t i, float w, float g) const {
    const auto correction = static_cast<float>(1 / hyper[2]), root_scale = static_cast<float>(1 / hyper[3]);
    const float first = m[i] + taken1 * (g - m[i]), second = kept2 * v[i] + taken2 * g * g;
    m_next[i] = first;
    v_next[i] = second;
    return first * correction / (device::math::sqrt(second) * root_scale + eps) + decay * w;
  }
};

struct Step {
  LambRate layer;
  const double* hyper;
  double scale;
  KOKKOS_INLINE_FUNCTION float operator()(std::int64_t, float w, float direction) const {
    return w - static_cast<float>(scale * hyper[0] * layer()) * direction;
  }
};

} // namespace

void run_lamb_direction(const Exec& exec, const Call& call) {
  const UpdateCall update = update_call(call, 2, DType::f32);
  const double beta1 = update.real("beta1"), beta2 = update.real("beta2");
  update_weights(exec, update, "soybean::lamb_direction",
                 Direction{static_cast<float>(update.real("weight_decay")), static_cast<float>(1 - beta1),
                           static_cast<float>(beta2), static_cast<float>(1 - beta2),
                           static_cast<float>(update.real("eps")), update.hyper(), update.state<float>(0),
                           update.state<float>(1), update.next_state<float>(0), update.next_state<float>(1)});
}

void run_lamb_update(const Exec& exec, const Call& call) {
  const UpdateCall update = update_call(call, 0, DType::f32);
  const double* norms = update.flag("adapted") ? update.norms() : nullptr;
  update_weights(exec, update, "soybean::lamb_update", Step{{norms}, update.hyper(), update.lr_scale()});
}

} // namespace soybean::kernels
