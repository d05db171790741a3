// SGD in f64 on the host: the formulas of torch.optim.SGD, step by step.
#include "kernels/layout.hpp"
#include "kernels/sgd.hpp"

namespace soybean::kernels::reference {

void run_sgd_update(const Exec&, const Call& call) {
  const TensorView &w = call.inputs[0], &grad = call.inputs[1], &hyper = call.inputs[2], &w_next = call.outputs[0];
  expect(w, DType::f64);
  expect_alike(w, grad);
  expect_alike(w, w_next);
  expect(hyper, DType::f64);
  const double momentum = call.node.attributes.real("momentum"), decay = call.node.attributes.real("weight_decay");
  const bool nesterov = call.node.attributes.integer("nesterov") != 0;
  const bool has_velocity = call.inputs.size() == 4;
  const double lr = hyper.as<double>()[0];
  if (has_velocity) {
    expect_alike(w, call.inputs[3]);
    expect_alike(w, call.outputs[1]);
  }
  for (std::int64_t i = 0; i < w.size(); ++i) {
    const double old = w.as<double>()[i];
    double g = grad.as<double>()[i] + decay * old;
    if (has_velocity) {
      const double v = momentum * call.inputs[3].as<double>()[i] + g;
      call.outputs[1].as<double>()[i] = v;
      g = nesterov ? g + momentum * v : v;
    }
    w_next.as<double>()[i] = old - lr * g;
  }
}

} // namespace soybean::kernels::reference
