#include "kernels/dense.hpp"

#include "base/error.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

namespace {

using device::Matmul;

/// Rows of the product that a block is: samples, or positions of images, whose channels are innermost.
std::int64_t rows_of(const TensorView& x) {
  return x.box.extents.size() == 2 ? x.extent(0) : channel_rows(x).rows;
}

/// Throws Bug unless the blocks are x [b, k], weight [n, k], y [b, n] with equal orders of k; or x and y images.
void expect_dense(const graph::Node& node, const TensorView& x, const TensorView& weight, const TensorView& y) {
  const bool images = x.box.extents.size() == 4;
  ensure(weight.box.extents.size() == 2 && x.box.extents.size() == y.box.extents.size() &&
             (images || x.box.extents.size() == 2),
         "dense layers work on features or images");
  const bool fits = rows_of(x) == rows_of(y) && x.extent(1) == weight.extent(1) && weight.extent(0) == y.extent(1) &&
                    (images || x.spatial == weight.spatial) && (images ? weight.spatial : y.spatial) == 1;
  if (!fits)
    throw Bug(fmt::format("{}: blocks x {}, weight {}, y {} do not fit together", node.name, to_string(x.box),
                          to_string(weight.box), to_string(y.box)));
}

void run(const Exec& exec, const Call& call, const Matmul& product, const float* bias = nullptr) {
  for (const TensorView& view : call.inputs) expect(view, DType::f32);
  expect(call.outputs[0], DType::f32);
  device::matmul(exec, product, call.inputs[0].as<float>(), call.inputs[1].as<float>(), call.outputs[0].as<float>(),
                 call.scratch, bias);
}

} // namespace

device::Matmul dense_product(const Call& call) {
  const TensorView &x = call.inputs[0], &weight = call.inputs[1], &y = call.outputs[0];
  expect_dense(call.node, x, weight, y);
  return {.m = rows_of(x), .n = weight.extent(0), .k = x.extent(1), .b_transposed = true};
}

device::Matmul dense_grad_input_product(const Call& call) {
  const TensorView &dy = call.inputs[0], &weight = call.inputs[1], &dx = call.outputs[0];
  expect_dense(call.node, dx, weight, dy);
  return {.m = rows_of(dy), .n = weight.extent(1), .k = dy.extent(1)};
}

device::Matmul dense_grad_weight_product(const Call& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1], &dweight = call.outputs[0];
  expect_dense(call.node, x, dweight, dy);
  return {.m = dy.extent(1), .n = x.extent(1), .k = rows_of(dy), .a_transposed = true};
}

namespace {

/// The product with the epilogue's bias.
Matmul biased_product(const Call& call, const Epilogue& epilogue) {
  Matmul product = dense_product(call);
  product.bias = epilogue.bias != nullptr;
  return product;
}

} // namespace

void run_dense(const Exec& exec, const Call& call) {
  const Epilogue epilogue = epilogue_of(call);
  run(exec, call, biased_product(call, epilogue), epilogue.bias ? epilogue.bias->as<float>() : nullptr);
  finish(exec, {.relu = epilogue.relu}, call.outputs[0]);
}
void run_dense_grad_input(const Exec& exec, const Call& call) {
  run(exec, call, dense_grad_input_product(call));
}
void run_dense_grad_weight(const Exec& exec, const Call& call) {
  run(exec, call, dense_grad_weight_product(call));
}

std::int64_t scratch_dense(const Exec& exec, const Call& call) {
  return device::matmul_scratch_bytes(exec, biased_product(call, epilogue_of(call)));
}
std::int64_t scratch_dense_grad_input(const Exec& exec, const Call& call) {
  return device::matmul_scratch_bytes(exec, dense_grad_input_product(call));
}
std::int64_t scratch_dense_grad_weight(const Exec& exec, const Call& call) {
  return device::matmul_scratch_bytes(exec, dense_grad_weight_product(call));
}

} // namespace soybean::kernels
