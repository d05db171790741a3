// Activations, f32. n elements: y[i] = f(x[i]) moves 8n bytes and takes n flops (tanh and sigmoid some 20n); a gradient
// dx[i] = f'(y[i])·dy[i] moves 12n bytes and takes n to 3n flops.
#include "kernels/pointwise.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"

namespace soybean::kernels {

void relu(const Exec& exec, const TensorView& x, const TensorView& y) {
  unary(exec, "soybean::relu", formulas::Relu{}, x, y);
}
void tanh(const Exec& exec, const TensorView& x, const TensorView& y) {
  unary(exec, "soybean::tanh", formulas::Tanh{}, x, y);
}
void sigmoid(const Exec& exec, const TensorView& x, const TensorView& y) {
  unary(exec, "soybean::sigmoid", formulas::Sigmoid{}, x, y);
}
void relu_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx) {
  binary(exec, "soybean::relu_grad", formulas::ReluGrad{}, dy, y, dx);
}
void tanh_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx) {
  binary(exec, "soybean::tanh_grad", formulas::TanhGrad{}, dy, y, dx);
}
void sigmoid_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx) {
  binary(exec, "soybean::sigmoid_grad", formulas::SigmoidGrad{}, dy, y, dx);
}

void run_relu(const Exec& exec, const Call& call) {
  relu(exec, call.inputs[0], call.outputs[0]);
}
void run_tanh(const Exec& exec, const Call& call) {
  tanh(exec, call.inputs[0], call.outputs[0]);
}
void run_sigmoid(const Exec& exec, const Call& call) {
  sigmoid(exec, call.inputs[0], call.outputs[0]);
}
void run_relu_grad(const Exec& exec, const Call& call) {
  relu_grad(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_tanh_grad(const Exec& exec, const Call& call) {
  tanh_grad(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_sigmoid_grad(const Exec& exec, const Call& call) {
  sigmoid_grad(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}
} // namespace soybean::kernels
