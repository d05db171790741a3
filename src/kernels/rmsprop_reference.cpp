// RMSprop in f64 on the host, step by step as torch.optim's single-tensor loop.
#include "kernels/rmsprop.hpp"
#include "kernels/update.hpp"

#include <cmath>

namespace soybean::kernels::reference {

void run_rmsprop_update(const Exec&, const Call& call) {
  const bool centered = call.node.attributes.integer("centered") != 0;
  const bool has_velocity = call.node.attributes.real("momentum") != 0;
  const UpdateCall update = update_call(call, 1 + centered + has_velocity, DType::f64);
  const double alpha = update.real("alpha"), eps = update.real("eps"), decay = update.real("weight_decay");
  const double momentum = update.real("momentum"), lr = update.hyper()[0] * update.lr_scale();
  const int at = centered ? 2 : 1; // of the velocity
  update_weights(update, [&](std::int64_t i, double w, double grad) {
    const double g = grad + decay * w;
    const double square = alpha * update.state<double>(0)[i] + (1 - alpha) * g * g;
    update.next_state<double>(0)[i] = square;
    double variance = square;
    if (centered) {
      const double before = update.state<double>(1)[i], mean = before + (1 - alpha) * (g - before);
      update.next_state<double>(1)[i] = mean;
      variance -= mean * mean;
    }
    double step = g / (std::sqrt(variance) + eps);
    if (has_velocity) step = update.next_state<double>(at)[i] = momentum * update.state<double>(at)[i] + step;
    return w - lr * step;
  });
}

} // namespace soybean::kernels::reference
