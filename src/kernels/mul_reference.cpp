// Elementwise product in f64 on the host: a plain loop.
#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"
#include "kernels/mul.hpp"

namespace soybean::kernels::reference {

void run_mul(const Exec&, const Call& call) {
  binary(formulas::Mul{}, call.inputs[0], call.inputs[1], call.outputs[0]);
}

} // namespace soybean::kernels::reference
