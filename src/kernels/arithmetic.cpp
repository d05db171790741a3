// Functions of one operand, f32. n elements: 8n bytes, 12n for the gradients, and a few flops each (powers,
// exponentials and logarithms some 20).
#include "kernels/arithmetic.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"

namespace soybean::kernels {

namespace {

float constant(const Call& call, std::string_view attribute) {
  return static_cast<float>(call.node.attributes.real(attribute));
}

} // namespace

void run_scale(const Exec& exec, const Call& call) {
  unary(exec, "soybean::scale", formulas::Scale<float>{constant(call, "factor")}, call.inputs[0], call.outputs[0]);
}
void run_shift(const Exec& exec, const Call& call) {
  unary(exec, "soybean::shift", formulas::Shift<float>{constant(call, "by")}, call.inputs[0], call.outputs[0]);
}
void run_pow(const Exec& exec, const Call& call) {
  if (call.node.attributes.real("exponent") == 2)
    return unary(exec, "soybean::pow", formulas::Square{}, call.inputs[0], call.outputs[0]);
  unary(exec, "soybean::pow", formulas::Pow<float>{constant(call, "exponent")}, call.inputs[0], call.outputs[0]);
}
void run_pow_grad(const Exec& exec, const Call& call) {
  if (call.node.attributes.real("exponent") == 2)
    return binary(exec, "soybean::pow_grad", formulas::SquareGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
  binary(exec, "soybean::pow_grad", formulas::PowGrad<float>{constant(call, "exponent")}, call.inputs[0],
         call.inputs[1], call.outputs[0]);
}
void run_sqrt(const Exec& exec, const Call& call) {
  unary(exec, "soybean::sqrt", formulas::Sqrt{}, call.inputs[0], call.outputs[0]);
}
void run_sqrt_grad(const Exec& exec, const Call& call) {
  binary(exec, "soybean::sqrt_grad", formulas::SqrtGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_exp(const Exec& exec, const Call& call) {
  unary(exec, "soybean::exp", formulas::Exp{}, call.inputs[0], call.outputs[0]);
}
void run_log(const Exec& exec, const Call& call) {
  unary(exec, "soybean::log", formulas::Log{}, call.inputs[0], call.outputs[0]);
}
void run_abs(const Exec& exec, const Call& call) {
  unary(exec, "soybean::abs", formulas::Abs{}, call.inputs[0], call.outputs[0]);
}
void run_abs_grad(const Exec& exec, const Call& call) {
  binary(exec, "soybean::abs_grad", formulas::AbsGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_clamp(const Exec& exec, const Call& call) {
  unary(exec, "soybean::clamp", formulas::Clamp<float>{constant(call, "min"), constant(call, "max")}, call.inputs[0],
        call.outputs[0]);
}
void run_clamp_grad(const Exec& exec, const Call& call) {
  binary(exec, "soybean::clamp_grad", formulas::ClampGrad<float>{constant(call, "min"), constant(call, "max")},
         call.inputs[0], call.inputs[1], call.outputs[0]);
}

} // namespace soybean::kernels
