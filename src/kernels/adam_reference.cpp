// Adam and AdamW in f64 on the host, step by step as torch.optim's single-tensor loops.
#include "kernels/adam.hpp"
#include "kernels/update.hpp"

#include <algorithm>
#include <cmath>

namespace soybean::kernels::reference {

void run_adam_update(const Exec&, const Call& call) {
  const bool amsgrad = call.node.attributes.integer("amsgrad") != 0;
  const UpdateCall update = update_call(call, amsgrad ? 3 : 2, DType::f64);
  const bool decoupled = update.flag("decoupled");
  const double beta1 = update.real("beta1"), beta2 = update.real("beta2"), eps = update.real("eps");
  const double decay = update.real("weight_decay");
  const double lr = update.hyper()[0] * update.lr_scale(), rate = lr / update.hyper()[2];
  const double root_correction = update.hyper()[3];
  const double *m = update.state<double>(0), *v = update.state<double>(1);
  double *m_next = update.next_state<double>(0), *v_next = update.next_state<double>(1);
  const double* most = amsgrad ? update.state<double>(2) : nullptr;
  double* most_next = amsgrad ? update.next_state<double>(2) : nullptr;
  update_weights(update, [&](std::int64_t i, double w, double g) {
    if (decoupled)
      w *= 1 - lr * decay;
    else
      g += decay * w;
    const double first = m[i] + (1 - beta1) * (g - m[i]);
    const double second = beta2 * v[i] + (1 - beta2) * g * g;
    m_next[i] = first;
    v_next[i] = second;
    double square = second;
    if (amsgrad) square = most_next[i] = std::max(most[i], second);
    return w - rate * first / (std::sqrt(square) / root_correction + eps);
  });
}

} // namespace soybean::kernels::reference
