#include "kernels/conv2d.hpp"

#include "base/error.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

namespace {

using device::Conv;
using device::ConvPass;

void expect_images(const TensorView& view) {
  ensure(view.box.extents.size() == 4, "convolutions work on rank-4 tensors");
  ensure(view.spatial == view.extent(2) * view.extent(3), "images are stored NHWC, height and width whole");
}

/// The convolution between blocks.
Conv local_conv(const graph::Node& node, const TensorView& x, const TensorView& weight, const TensorView& y) {
  expect_images(x);
  expect_images(y);
  ensure(weight.box.extents.size() == 4 && weight.spatial == 1, "convolution weights are plain");
  const auto &kernel = node.attributes.integers("kernel"), &stride = node.attributes.integers("stride"),
             &padding = node.attributes.integers("padding"), &dilation = node.attributes.integers("dilation");
  Conv c{.batch = x.extent(0),
         .in_channels = x.extent(1),
         .out_channels = weight.extent(0),
         .height = x.extent(2),
         .width = x.extent(3),
         .kernel_h = kernel[0],
         .kernel_w = kernel[1],
         .stride_h = stride[0],
         .stride_w = stride[1],
         .padding_h = padding[0],
         .padding_w = padding[1],
         .dilation_h = dilation[0],
         .dilation_w = dilation[1]};
  if (node.attributes.integer("groups") > 1 && c.in_channels > 0) c.groups = c.in_channels / weight.global[1];
  const bool fits = y.extent(0) == c.batch && y.extent(1) == c.out_channels && y.extent(2) == c.out_height() &&
                    y.extent(3) == c.out_width() && weight.extent(2) == c.kernel_h && weight.extent(3) == c.kernel_w &&
                    (c.in_channels == 0 || weight.extent(1) * c.groups == c.in_channels) &&
                    c.out_channels % c.groups == 0;
  ensure(fits, fmt::format("{}: blocks x {}, weight {}, y {} do not fit together", node.name, to_string(x.box),
                           to_string(weight.box), to_string(y.box)));
  return c;
}

} // namespace

Conv forward_conv(const Call& call) {
  return local_conv(call.node, call.inputs[0], call.inputs[1], call.outputs[0]);
}
Conv grad_input_conv(const Call& call) {
  return local_conv(call.node, call.outputs[0], call.inputs[1], call.inputs[0]);
}
Conv grad_weight_conv(const Call& call) {
  return local_conv(call.node, call.inputs[1], call.outputs[0], call.inputs[0]);
}

namespace {

/// Checks the element types of a call's operands.
void expect_floats(const Call& call) {
  for (const TensorView& view : call.inputs) expect(view, DType::f32);
  expect(call.outputs[0], DType::f32);
}

} // namespace

namespace {

/// The forward pass as the vendor layer is asked for it: with the epilogue's bias where it takes one.
Conv vendor_conv(const Exec& exec, const Call& call, const Epilogue& epilogue) {
  Conv conv = forward_conv(call);
  conv.bias = epilogue.bias != nullptr && device::conv_takes_bias(exec, conv, epilogue.relu);
  return conv;
}

} // namespace

void run_conv2d(const Exec& exec, const Call& call) {
  expect_floats(call);
  Epilogue epilogue = epilogue_of(call);
  const Conv conv = vendor_conv(exec, call, epilogue);
  const float* bias = conv.bias ? epilogue.bias->as<float>() : nullptr;
  device::conv_forward(exec, conv, call.inputs[0].as<float>(), call.inputs[1].as<float>(), call.outputs[0].as<float>(),
                       call.scratch, bias);
  if (conv.bias) epilogue.bias = nullptr;
  finish(exec, epilogue, call.outputs[0]);
}

void run_conv2d_grad_input(const Exec& exec, const Call& call) {
  expect_floats(call);
  device::conv_backward_data(exec, grad_input_conv(call), call.inputs[0].as<float>(), call.inputs[1].as<float>(),
                             call.outputs[0].as<float>(), call.scratch);
}

void run_conv2d_grad_weight(const Exec& exec, const Call& call) {
  expect_floats(call);
  device::conv_backward_weights(exec, grad_weight_conv(call), call.inputs[0].as<float>(), call.inputs[1].as<float>(),
                                call.outputs[0].as<float>(), call.scratch);
}

std::int64_t scratch_conv2d(const Exec& exec, const Call& call) {
  return device::conv_scratch_bytes(exec, vendor_conv(exec, call, epilogue_of(call)), ConvPass::forward);
}
std::int64_t scratch_conv2d_grad_input(const Exec& exec, const Call& call) {
  return device::conv_scratch_bytes(exec, grad_input_conv(call), ConvPass::backward_data);
}
std::int64_t scratch_conv2d_grad_weight(const Exec& exec, const Call& call) {
  return device::conv_scratch_bytes(exec, grad_weight_conv(call), ConvPass::backward_weights);
}

} // namespace soybean::kernels
