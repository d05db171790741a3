// RMSprop, f32. n weights: 20n bytes, 8n more for each of mean and momentum; about 9n flops, a root and a quotient.
// Results may be the memory of w and the states.
#include "kernels/rmsprop.hpp"

#include "device/math.hpp"
#include "kernels/update.hpp"

namespace soybean::kernels {

namespace {

struct Settings {
  float decay = 0, kept = 0, taken = 0, eps = 0, momentum = 0;
  double scale = 1;
};

template<bool centered, bool with_momentum>
struct RmsProp {
  Settings s;
  const double* hyper;
  const float *square, *mean, *v;
  float *square_next, *mean_next, *v_next;

  KOKKOS_INLINE_FUNCTION float operator()(std::int64_t i, float w, float grad) const {
    const auto rate = static_cast<float>(s.scale * hyper[0]);
    const float g = grad + s.decay * w, squares = s.kept * square[i] + s.taken * g * g;
    square_next[i] = squares;
    float variance = squares;
    if constexpr (centered) {
      const float middle = mean[i] + s.taken * (g - mean[i]);
      mean_next[i] = middle;
      variance -= middle * middle;
    }
    const float step = g / (device::math::sqrt(variance) + s.eps);
    if constexpr (with_momentum) {
      const float moved = s.momentum * v[i] + step;
      v_next[i] = moved;
      return w - rate * moved;
    } else {
      return w - rate * step;
    }
  }
};

template<bool centered, bool with_momentum>
void run(const Exec& exec, const UpdateCall& update, const Settings& settings) {
  RmsProp<centered, with_momentum> step{settings, update.hyper(), update.state<float>(0),
                                        nullptr,  nullptr,        update.next_state<float>(0),
                                        nullptr,  nullptr};
  int next = 1;
  if constexpr (centered) {
    step.mean = update.state<float>(next);
    step.mean_next = update.next_state<float>(next++);
  }
  if constexpr (with_momentum) {
    step.v = update.state<float>(next);
    step.v_next = update.next_state<float>(next);
  }
  update_weights(exec, update, "soybean::rmsprop_update", step);
}

} // namespace

void run_rmsprop_update(const Exec& exec, const Call& call) {
  const bool centered = call.node.attributes.integer("centered") != 0;
  const bool momentum = call.node.attributes.real("momentum") != 0;
  const UpdateCall update = update_call(call, 1 + centered + momentum, DType::f32);
  const double alpha = update.real("alpha");
  const Settings settings{.decay = static_cast<float>(update.real("weight_decay")),
                          .kept = static_cast<float>(alpha),
                          .taken = static_cast<float>(1 - alpha),
                          .eps = static_cast<float>(update.real("eps")),
                          .momentum = static_cast<float>(update.real("momentum")),
                          .scale = update.lr_scale()};
  if (centered && momentum)
    run<true, true>(exec, update, settings);
  else if (centered)
    run<true, false>(exec, update, settings);
  else if (momentum)
    run<false, true>(exec, update, settings);
  else
    run<false, false>(exec, update, settings);
}

} // namespace soybean::kernels
