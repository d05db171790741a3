// Sum of k tensors of n elements, f32, in k − 1 passes: 12(k − 1)n bytes and (k − 1)n flops.
#include "kernels/add.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/formulas.hpp"

namespace soybean::kernels {

void add(const Exec& exec, std::span<const TensorView> x, const TensorView& y) {
  ensure(x.size() >= 2, "add of fewer than two tensors");
  for (std::size_t k = 1; k < x.size(); ++k) {
    ensure(x[k].data != y.data || y.size() == 0, "add may overwrite only its first operand");
    binary(exec, "soybean::add", formulas::Add{}, k == 1 ? x[0] : y, x[k], y);
  }
}

void run_add(const Exec& exec, const Call& call) {
  add(exec, call.inputs, call.outputs[0]);
}

} // namespace soybean::kernels
