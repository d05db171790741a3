// Activations in f64 on the host: the shared formulas in plain loops.
#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"
#include "kernels/pointwise.hpp"

namespace soybean::kernels::reference {

void run_relu(const Exec&, const Call& call) {
  unary(formulas::Relu{}, call.inputs[0], call.outputs[0]);
}
void run_relu6(const Exec&, const Call& call) {
  unary(formulas::Relu6{}, call.inputs[0], call.outputs[0]);
}
void run_tanh(const Exec&, const Call& call) {
  unary(formulas::Tanh{}, call.inputs[0], call.outputs[0]);
}
void run_sigmoid(const Exec&, const Call& call) {
  unary(formulas::Sigmoid{}, call.inputs[0], call.outputs[0]);
}
void run_relu_grad(const Exec&, const Call& call) {
  binary(formulas::ReluGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_relu6_grad(const Exec&, const Call& call) {
  binary(formulas::Relu6Grad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_tanh_grad(const Exec&, const Call& call) {
  binary(formulas::TanhGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_sigmoid_grad(const Exec&, const Call& call) {
  binary(formulas::SigmoidGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}

namespace {

double slope(const Call& call) {
  return call.node.attributes.real("slope");
}
double alpha(const Call& call) {
  return call.node.attributes.real("alpha");
}

} // namespace

void run_leaky_relu(const Exec&, const Call& call) {
  unary(formulas::LeakyRelu<double>{slope(call)}, call.inputs[0], call.outputs[0]);
}
void run_leaky_relu_grad(const Exec&, const Call& call) {
  binary(formulas::LeakyReluGrad<double>{slope(call)}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_elu(const Exec&, const Call& call) {
  unary(formulas::Elu<double>{alpha(call)}, call.inputs[0], call.outputs[0]);
}
void run_elu_grad(const Exec&, const Call& call) {
  binary(formulas::EluGrad<double>{alpha(call)}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_silu(const Exec&, const Call& call) {
  unary(formulas::Silu{}, call.inputs[0], call.outputs[0]);
}
void run_silu_grad(const Exec&, const Call& call) {
  binary(formulas::SiluGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_hard_swish(const Exec&, const Call& call) {
  unary(formulas::HardSwish{}, call.inputs[0], call.outputs[0]);
}
void run_hard_swish_grad(const Exec&, const Call& call) {
  binary(formulas::HardSwishGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_gelu(const Exec&, const Call& call) {
  if (gelu_kind(call.node) == Gelu::exact)
    unary(formulas::Gelu{}, call.inputs[0], call.outputs[0]);
  else
    unary(formulas::GeluTanh{}, call.inputs[0], call.outputs[0]);
}
void run_gelu_grad(const Exec&, const Call& call) {
  if (gelu_kind(call.node) == Gelu::exact)
    binary(formulas::GeluGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
  else
    binary(formulas::GeluTanhGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}

} // namespace soybean::kernels::reference
