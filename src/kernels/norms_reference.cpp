// Norms in f64 on the host.
#include "kernels/layout.hpp"
#include "kernels/norms.hpp"

#include <cmath>

namespace soybean::kernels::reference {

void run_sum_of_squares(const Exec&, const Call& call) {
  expect(call.outputs[0], DType::f64);
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    expect(call.inputs[k], DType::f64);
    const double* x = call.inputs[k].as<const double>();
    double sum = 0;
    for (std::int64_t i = 0; i < call.inputs[k].size(); ++i) sum += x[i] * x[i];
    call.outputs[0].as<double>()[k] = sum;
  }
}

void run_sum_of_sums(const Exec&, const Call& call) {
  double sum = 0;
  for (const TensorView& input : call.inputs) sum += *input.as<const double>();
  *call.outputs[0].as<double>() = sum;
}

void run_clip_factor(const Exec&, const Call& call) {
  const double norm = std::sqrt(*call.inputs[0].as<const double>());
  const double part = call.node.attributes.real("most") / (norm + 1e-6);
  *call.outputs[0].as<double>() = norm;
  *call.outputs[1].as<double>() = part > 1 ? 1 : part;
}

} // namespace soybean::kernels::reference
