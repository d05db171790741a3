// LARS in f64 on the host, step by step as in algorithm 1 of arXiv 1708.03888.
#include "kernels/lars.hpp"
#include "kernels/lars_rate.hpp"
#include "kernels/update.hpp"

namespace soybean::kernels::reference {

void run_lars_update(const Exec&, const Call& call) {
  const double momentum = call.node.attributes.real("momentum");
  const UpdateCall update = update_call(call, momentum != 0 ? 1 : 0, DType::f64);
  const double decay = update.real("weight_decay");
  const LarsRate layer{update.real("trust"), decay, update.real("eps"),
                       update.flag("adapted") ? update.norms() : nullptr, update.factor()};
  const double rate = update.hyper()[0] * update.lr_scale() * layer();
  update_weights(update, [&](std::int64_t i, double w, double grad) {
    double step = rate * (grad + decay * w);
    if (momentum != 0) step = update.next_state<double>(0)[i] = momentum * update.state<double>(0)[i] + step;
    return w - step;
  });
}

} // namespace soybean::kernels::reference
