// Activations, f32. n elements: y[i] = f(x[i]) moves 8n bytes and takes n flops (those with exponentials some 20n); a
// gradient dx[i] = f'·dy[i] moves 12n bytes and takes n flops or more.
#include "kernels/pointwise.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"

namespace soybean::kernels {

void relu(const Exec& exec, const TensorView& x, const TensorView& y) {
  unary(exec, "soybean::relu", formulas::Relu{}, x, y);
}
void relu6(const Exec& exec, const TensorView& x, const TensorView& y) {
  unary(exec, "soybean::relu6", formulas::Relu6{}, x, y);
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
void relu6_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx) {
  binary(exec, "soybean::relu6_grad", formulas::Relu6Grad{}, dy, y, dx);
}
void tanh_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx) {
  binary(exec, "soybean::tanh_grad", formulas::TanhGrad{}, dy, y, dx);
}
void sigmoid_grad(const Exec& exec, const TensorView& dy, const TensorView& y, const TensorView& dx) {
  binary(exec, "soybean::sigmoid_grad", formulas::SigmoidGrad{}, dy, y, dx);
}

void leaky_relu(const Exec& exec, float slope, const TensorView& x, const TensorView& y) {
  unary(exec, "soybean::leaky_relu", formulas::LeakyRelu<float>{slope}, x, y);
}
void leaky_relu_grad(const Exec& exec, float slope, const TensorView& dy, const TensorView& y, const TensorView& dx) {
  binary(exec, "soybean::leaky_relu_grad", formulas::LeakyReluGrad<float>{slope}, dy, y, dx);
}
void elu(const Exec& exec, float alpha, const TensorView& x, const TensorView& y) {
  unary(exec, "soybean::elu", formulas::Elu<float>{alpha}, x, y);
}
void elu_grad(const Exec& exec, float alpha, const TensorView& dy, const TensorView& y, const TensorView& dx) {
  binary(exec, "soybean::elu_grad", formulas::EluGrad<float>{alpha}, dy, y, dx);
}
void gelu(const Exec& exec, Gelu kind, const TensorView& x, const TensorView& y) {
  if (kind == Gelu::exact)
    unary(exec, "soybean::gelu", formulas::Gelu{}, x, y);
  else
    unary(exec, "soybean::gelu", formulas::GeluTanh{}, x, y);
}
void gelu_grad(const Exec& exec, Gelu kind, const TensorView& dy, const TensorView& x, const TensorView& dx) {
  if (kind == Gelu::exact)
    binary(exec, "soybean::gelu_grad", formulas::GeluGrad{}, dy, x, dx);
  else
    binary(exec, "soybean::gelu_grad", formulas::GeluTanhGrad{}, dy, x, dx);
}
void silu(const Exec& exec, const TensorView& x, const TensorView& y) {
  unary(exec, "soybean::silu", formulas::Silu{}, x, y);
}
void silu_grad(const Exec& exec, const TensorView& dy, const TensorView& x, const TensorView& dx) {
  binary(exec, "soybean::silu_grad", formulas::SiluGrad{}, dy, x, dx);
}
void hard_swish(const Exec& exec, const TensorView& x, const TensorView& y) {
  unary(exec, "soybean::hard_swish", formulas::HardSwish{}, x, y);
}
void hard_swish_grad(const Exec& exec, const TensorView& dy, const TensorView& x, const TensorView& dx) {
  binary(exec, "soybean::hard_swish_grad", formulas::HardSwishGrad{}, dy, x, dx);
}

Gelu gelu_kind(const graph::Node& node) {
  return node.attributes.text("approximate") == "tanh" ? Gelu::tanh : Gelu::exact;
}

namespace {

float real(const Call& call, std::string_view attribute) {
  return static_cast<float>(call.node.attributes.real(attribute));
}

} // namespace

void run_relu(const Exec& exec, const Call& call) {
  relu(exec, call.inputs[0], call.outputs[0]);
}
void run_relu6(const Exec& exec, const Call& call) {
  relu6(exec, call.inputs[0], call.outputs[0]);
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
void run_relu6_grad(const Exec& exec, const Call& call) {
  relu6_grad(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_tanh_grad(const Exec& exec, const Call& call) {
  tanh_grad(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_sigmoid_grad(const Exec& exec, const Call& call) {
  sigmoid_grad(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_leaky_relu(const Exec& exec, const Call& call) {
  leaky_relu(exec, real(call, "slope"), call.inputs[0], call.outputs[0]);
}
void run_leaky_relu_grad(const Exec& exec, const Call& call) {
  leaky_relu_grad(exec, real(call, "slope"), call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_elu(const Exec& exec, const Call& call) {
  elu(exec, real(call, "alpha"), call.inputs[0], call.outputs[0]);
}
void run_elu_grad(const Exec& exec, const Call& call) {
  elu_grad(exec, real(call, "alpha"), call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_gelu(const Exec& exec, const Call& call) {
  gelu(exec, gelu_kind(call.node), call.inputs[0], call.outputs[0]);
}
void run_gelu_grad(const Exec& exec, const Call& call) {
  gelu_grad(exec, gelu_kind(call.node), call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_silu(const Exec& exec, const Call& call) {
  silu(exec, call.inputs[0], call.outputs[0]);
}
void run_silu_grad(const Exec& exec, const Call& call) {
  silu_grad(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_hard_swish(const Exec& exec, const Call& call) {
  hard_swish(exec, call.inputs[0], call.outputs[0]);
}
void run_hard_swish_grad(const Exec& exec, const Call& call) {
  hard_swish_grad(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}

} // namespace soybean::kernels
