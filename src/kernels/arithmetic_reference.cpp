// Functions of one operand in f64 on the host: the shared formulas in plain loops.
#include "kernels/arithmetic.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"

namespace soybean::kernels::reference {

namespace {

double constant(const Call& call, std::string_view attribute) {
  return call.node.attributes.real(attribute);
}

} // namespace

void run_scale(const Exec&, const Call& call) {
  unary(formulas::Scale<double>{constant(call, "factor")}, call.inputs[0], call.outputs[0]);
}
void run_shift(const Exec&, const Call& call) {
  unary(formulas::Shift<double>{constant(call, "by")}, call.inputs[0], call.outputs[0]);
}
void run_pow(const Exec&, const Call& call) {
  unary(formulas::Pow<double>{constant(call, "exponent")}, call.inputs[0], call.outputs[0]);
}
void run_pow_grad(const Exec&, const Call& call) {
  binary(formulas::PowGrad<double>{constant(call, "exponent")}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_sqrt(const Exec&, const Call& call) {
  unary(formulas::Sqrt{}, call.inputs[0], call.outputs[0]);
}
void run_sqrt_grad(const Exec&, const Call& call) {
  binary(formulas::SqrtGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_exp(const Exec&, const Call& call) {
  unary(formulas::Exp{}, call.inputs[0], call.outputs[0]);
}
void run_log(const Exec&, const Call& call) {
  unary(formulas::Log{}, call.inputs[0], call.outputs[0]);
}
void run_abs(const Exec&, const Call& call) {
  unary(formulas::Abs{}, call.inputs[0], call.outputs[0]);
}
void run_abs_grad(const Exec&, const Call& call) {
  binary(formulas::AbsGrad{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}
void run_clamp(const Exec&, const Call& call) {
  unary(formulas::Clamp<double>{constant(call, "min"), constant(call, "max")}, call.inputs[0], call.outputs[0]);
}
void run_clamp_grad(const Exec&, const Call& call) {
  binary(formulas::ClampGrad<double>{constant(call, "min"), constant(call, "max")}, call.inputs[0], call.inputs[1],
         call.outputs[0]);
}

} // namespace soybean::kernels::reference
