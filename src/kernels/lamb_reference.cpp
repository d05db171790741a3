// LAMB in f64 on the host, step by step as in algorithm 2 of arXiv 1904.00962.
#include "kernels/lamb.hpp"
#include "kernels/lars_rate.hpp"
#include "kernels/update.hpp"

#include <cmath>

namespace soybean::kernels::reference {

void run_lamb_direction(const Exec&, const Call& call) {
  const UpdateCall update = update_call(call, 2, DType::f64);
  const double beta1 = update.real("beta1"), beta2 = update.real("beta2"), eps = update.real("eps");
  const double decay = update.real("weight_decay");
  const double correction = update.hyper()[2], root_correction = update.hyper()[3];
  update_weights(update, [&](std::int64_t i, double w, double g) {
    const double m = beta1 * update.state<double>(0)[i] + (1 - beta1) * g;
    const double v = beta2 * update.state<double>(1)[i] + (1 - beta2) * g * g;
    update.next_state<double>(0)[i] = m;
    update.next_state<double>(1)[i] = v;
    return m / correction / (std::sqrt(v) / root_correction + eps) + decay * w;
  });
}

void run_lamb_update(const Exec&, const Call& call) {
  const UpdateCall update = update_call(call, 0, DType::f64);
  const LambRate layer{update.flag("adapted") ? update.norms() : nullptr};
  const double rate = update.hyper()[0] * update.lr_scale() * layer();
  update_weights(update, [&](std::int64_t, double w, double direction) { return w - rate * direction; });
}

} // namespace soybean::kernels::reference
