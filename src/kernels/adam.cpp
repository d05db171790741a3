// Adam, f32. n weights: 28n bytes (36n with amsgrad) and about 13n flops, a root and a quotient. Results may be the
// memory of w and the moments.
#include "kernels/adam.hpp"

#include "device/math.hpp"
#include "kernels/update.hpp"

namespace soybean::kernels {

namespace {

struct Settings {
  float decay = 0;  ///< added to the gradient, times the weight
  float shrink = 0; ///< AdamW: the weight loses lr times this part first
  float taken1 = 0, kept2 = 0, taken2 = 0, eps = 0;
  double scale = 1;
};

template<bool amsgrad>
struct Adam {
  Settings s;
  const double* hyper;
  const float *m, *v, *most;
  float *m_next, *v_next, *most_next;

  KOKKOS_INLINE_FUNCTION float operator()(std::int64_t i, float w, float grad) const {
    const double lr = s.scale * hyper[0];
    const auto rate = static_cast<float>(lr / hyper[2]), root_scale = static_cast<float>(1 / hyper[3]);
    const float g = grad + s.decay * w, kept = w - static_cast<float>(lr) * s.shrink * w;
    const float first = m[i] + s.taken1 * (g - m[i]), second = s.kept2 * v[i] + s.taken2 * g * g;
    m_next[i] = first;
    v_next[i] = second;
    float square = second;
    if constexpr (amsgrad) {
      square = most[i] > second ? most[i] : second;
      most_next[i] = square;
    }
    return kept - rate * first / (device::math::sqrt(square) * root_scale + s.eps);
  }
};

} // namespace

void run_adam_update(const Exec& exec, const Call& call) {
  const bool amsgrad = call.node.attributes.integer("amsgrad") != 0;
  const UpdateCall update = update_call(call, amsgrad ? 3 : 2, DType::f32);
  const bool decoupled = update.flag("decoupled");
  const auto decay = static_cast<float>(update.real("weight_decay"));
  const double beta1 = update.real("beta1"), beta2 = update.real("beta2");
  const Settings settings{.decay = decoupled ? 0 : decay,
                          .shrink = decoupled ? decay : 0,
                          .taken1 = static_cast<float>(1 - beta1),
                          .kept2 = static_cast<float>(beta2),
                          .taken2 = static_cast<float>(1 - beta2),
                          .eps = static_cast<float>(update.real("eps")),
                          .scale = update.lr_scale()};
  const float *m = update.state<float>(0), *v = update.state<float>(1);
  float *m_next = update.next_state<float>(0), *v_next = update.next_state<float>(1);
  if (amsgrad)
    update_weights(exec, update, "soybean::adam_update::amsgrad",
                   Adam<true>{settings, update.hyper(), m, v, update.state<float>(2), m_next, v_next,
                              update.next_state<float>(2)});
  else
    update_weights(exec, update, "soybean::adam_update",
                   Adam<false>{settings, update.hyper(), m, v, nullptr, m_next, v_next, nullptr});
}

} // namespace soybean::kernels
