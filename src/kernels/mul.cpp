// Elementwise product of n elements, f32: 12n bytes and n flops.
#include "kernels/mul.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"

namespace soybean::kernels {

void mul(const Exec& exec, const TensorView& x1, const TensorView& x2, const TensorView& y) {
  binary(exec, "soybean::mul", formulas::Mul{}, x1, x2, y);
}

void run_mul(const Exec& exec, const Call& call) {
  mul(exec, call.inputs[0], call.inputs[1], call.outputs[0]);
}

} // namespace soybean::kernels
