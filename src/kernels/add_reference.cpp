// Sum of tensors in f64 on the host: term by term, from the left.
#include "kernels/add.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels::reference {

void run_add(const Exec&, const Call& call) {
  const TensorView& y = call.outputs[0];
  for (const TensorView& term : call.inputs) {
    expect(term, DType::f64);
    expect_alike(term, y);
  }
  for (std::int64_t i = 0; i < y.size(); ++i) {
    double sum = call.inputs[0].as<double>()[i];
    for (std::size_t k = 1; k < call.inputs.size(); ++k) sum += call.inputs[k].as<double>()[i];
    y.as<double>()[i] = sum;
  }
}

} // namespace soybean::kernels::reference
