// Activations in f64 on the host: the shared formulas in plain loops.
#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"
#include "kernels/pointwise.hpp"

namespace soybean::kernels::reference {

void run_relu(const Exec&, const Call& call) {
  unary(formulas::Relu{}, call.inputs[0], call.outputs[0]);
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
void run_tanh_grad(const Exec&, const Call& call) {
  binary(formulas::TanhGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_sigmoid_grad(const Exec&, const Call& call) {
  binary(formulas::SigmoidGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
} // namespace soybean::kernels::reference
