// SGD in f64 on the host: the formulas of torch.optim.SGD, step by step.
#include "kernels/sgd.hpp"
#include "kernels/update.hpp"

namespace soybean::kernels::reference {

void run_sgd_update(const Exec&, const Call& call) {
  const double momentum = call.node.attributes.real("momentum"), decay = call.node.attributes.real("weight_decay");
  const bool has_velocity = momentum != 0;
  const UpdateCall update = update_call(call, has_velocity ? 1 : 0, DType::f64);
  const bool nesterov = update.flag("nesterov");
  const double lr = update.hyper()[0] * update.lr_scale();
  const double* v = has_velocity ? update.state<double>(0) : nullptr;
  double* v_next = has_velocity ? update.next_state<double>(0) : nullptr;
  update_weights(update, [&](std::int64_t i, double w, double grad) {
    double g = grad + decay * w;
    if (has_velocity) {
      const double moved = momentum * v[i] + g;
      v_next[i] = moved;
      g = nesterov ? g + momentum * moved : moved;
    }
    return w - lr * g;
  });
}

} // namespace soybean::kernels::reference
