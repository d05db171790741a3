#include "kernels/epilogue.hpp"

#include "base/error.hpp"
#include "kernels/bias.hpp"
#include "kernels/layout.hpp"
#include "kernels/pointwise.hpp"

namespace soybean::kernels {

Epilogue epilogue_of(const Call& call) {
  Epilogue epilogue;
  std::size_t operand = call.node.inputs.size();
  for (const graph::Node* node : call.epilogue) {
    ensure(!epilogue.relu && (node->op == "relu" || (node->op == "bias" && !epilogue.bias)),
           call.node.name + " does not take " + node->name + " into its call");
    if (node->op == "relu")
      epilogue.relu = true;
    else
      epilogue.bias = &call.inputs[operand++];
  }
  if (epilogue.bias) {
    expect(*epilogue.bias, DType::f32);
    ensure(epilogue.bias->size() == call.outputs[0].extent(1),
           call.node.name + ": its bias has another number of channels than its result");
  }
  return epilogue;
}

void finish(const Exec& exec, const Epilogue& epilogue, const TensorView& y) {
  if (epilogue.bias && epilogue.relu)
    bias_relu(exec, y, *epilogue.bias, y);
  else if (epilogue.bias)
    bias(exec, y, *epilogue.bias, y);
  else if (epilogue.relu)
    relu(exec, y, y);
}

} // namespace soybean::kernels
