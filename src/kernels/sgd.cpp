// SGD, f32. n weights: 12n bytes and 4n flops, with momentum 20n bytes and 8n flops. Results may be the memory of w and
// v.
#include "kernels/sgd.hpp"

#include "device/rows.hpp"
#include "kernels/formulas.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

namespace {

struct Operands {
  const TensorView &w, &grad, &hyper, &w_next;
};

formulas::Sgd<float> coefficients(const graph::Node& node) {
  return formulas::make_sgd<float>(node.attributes.real("momentum"), node.attributes.real("weight_decay"),
                                   node.attributes.integer("nesterov") != 0);
}

void plain(const Exec& exec, const formulas::Sgd<float>& sgd, const Operands& o) {
  const float *w = o.w.as<const float>(), *grad = o.grad.as<const float>();
  const double* lr = o.hyper.as<const double>();
  float* w_next = o.w_next.as<float>();
  device::flat_for(
      exec, o.w.size(), "soybean::sgd_update", KOKKOS_LAMBDA(std::int64_t i) {
        const float rate = static_cast<float>(*lr), old = w[i];
        w_next[i] = old - rate * sgd.gradient(grad[i], old);
      });
}

void with_momentum(const Exec& exec, const formulas::Sgd<float>& sgd, const Operands& o, const TensorView& velocity,
                   const TensorView& velocity_next) {
  expect_alike(o.w, velocity);
  expect_alike(o.w, velocity_next);
  const float *w = o.w.as<const float>(), *grad = o.grad.as<const float>(), *v = velocity.as<const float>();
  const double* lr = o.hyper.as<const double>();
  float *w_next = o.w_next.as<float>(), *v_next = velocity_next.as<float>();
  device::flat_for(
      exec, o.w.size(), "soybean::sgd_update::momentum", KOKKOS_LAMBDA(std::int64_t i) {
        const float rate = static_cast<float>(*lr), old = w[i];
        const float g = sgd.gradient(grad[i], old), moved = sgd.velocity(v[i], g);
        v_next[i] = moved;
        w_next[i] = old - rate * sgd.step(g, moved);
      });
}

} // namespace

void run_sgd_update(const Exec& exec, const Call& call) {
  const Operands o{call.inputs[0], call.inputs[1], call.inputs[2], call.outputs[0]};
  expect(o.w, DType::f32);
  expect_alike(o.w, o.grad);
  expect_alike(o.w, o.w_next);
  expect(o.hyper, DType::f64);
  const auto sgd = coefficients(call.node);
  if (call.inputs.size() == 3)
    plain(exec, sgd, o);
  else
    with_momentum(exec, sgd, o, call.inputs[3], call.outputs[1]);
}

} // namespace soybean::kernels
