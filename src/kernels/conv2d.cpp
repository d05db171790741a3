#include "kernels/conv2d.hpp"

#include "base/error.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/frame.hpp"
#include "kernels/layout.hpp"

#include <cstddef>

namespace soybean::kernels {

namespace {

using device::Conv;
using device::ConvPass;

void expect_images(const TensorView& view) {
  ensure(view.box.extents.size() == 4, "convolutions work on rank-4 tensors");
  ensure(view.size() == 0 || view.spatial == view.extent(2) * view.extent(3), "images are stored NHWC");
}

/// Padding of a block of an image, height or width.
struct Padding {
  std::int64_t before = 0, uneven = 0;
};

/// Window i of y's block begins at row i·stride − before of x's. What lies between the two blocks' ends and neither in
/// x nor in the image's padding is nobody's: the form gives x all rows that the windows reach.
Padding padding_of(const graph::Node& node, const TensorView& x, const TensorView& y, std::size_t axis) {
  const int dim = 2 + static_cast<int>(axis);
  const std::int64_t kernel = node.attributes.integers("kernel")[axis],
                     stride = node.attributes.integers("stride")[axis],
                     padding = node.attributes.integers("padding")[axis],
                     dilation = node.attributes.integers("dilation")[axis];
  if (x.extent(dim) == x.global[dim] && y.extent(dim) == y.global[dim]) return {padding, 0};
  const std::int64_t rows = x.extent(dim), windows = y.extent(dim);
  Padding p;
  if (rows > 0 && windows > 0) p.before = padding + x.box.offsets[dim] - y.box.offsets[dim] * stride;
  p.uneven = (windows - 1) * stride + dilation * (kernel - 1) + 1 - rows - 2 * p.before;
  if (windows > 0 && p.uneven <= 0 && p.uneven > -stride) p.uneven = 0; // rows that no further window fits into
  return p;
}

/// The convolution between blocks.
Conv local_conv(const graph::Node& node, const TensorView& x, const TensorView& weight, const TensorView& y) {
  expect_images(x);
  expect_images(y);
  ensure(weight.box.extents.size() == 4 && weight.spatial == 1, "convolution weights are plain");
  const auto &kernel = node.attributes.integers("kernel"), &stride = node.attributes.integers("stride"),
             &dilation = node.attributes.integers("dilation");
  const Padding h = padding_of(node, x, y, 0), w = padding_of(node, x, y, 1);
  Conv c{.batch = x.extent(0),
         .in_channels = x.extent(1),
         .out_channels = weight.extent(0),
         .height = x.extent(2),
         .width = x.extent(3),
         .kernel_h = kernel[0],
         .kernel_w = kernel[1],
         .stride_h = stride[0],
         .stride_w = stride[1],
         .padding_h = h.before,
         .padding_w = w.before,
         .dilation_h = dilation[0],
         .dilation_w = dilation[1],
         .uneven_h = h.uneven,
         .uneven_w = w.uneven};
  if (node.attributes.integer("groups") > 1 && c.in_channels > 0) c.groups = c.in_channels / weight.global[1];
  const bool fits = y.extent(0) == c.batch && y.extent(1) == c.out_channels && y.extent(2) == c.out_height() &&
                    y.extent(3) == c.out_width() && weight.extent(2) == c.kernel_h && weight.extent(3) == c.kernel_w &&
                    (c.in_channels == 0 || weight.extent(1) * c.groups == c.in_channels) &&
                    c.out_channels % c.groups == 0;
  if (!fits)
    throw Bug(fmt::format("{}: blocks x {}, weight {}, y {} do not fit together", node.name, to_string(x.box),
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

/// A convolution as the vendor layer is asked for it: where that does not take the padding, of x with the padding
/// written out, which lies at the start of the scratch.
struct VendorConv {
  Conv conv;
  bool framed = false;
  Frame frame;                  ///< from x to x in its frame
  std::int64_t frame_bytes = 0; ///< of scratch

  float* image(void* scratch) const { return static_cast<float*>(scratch); }
  void* rest(void* scratch) const {
    return frame_bytes == 0 ? scratch : static_cast<std::byte*>(scratch) + frame_bytes;
  }
};

VendorConv vendor_conv(const Conv& conv) {
  constexpr std::int64_t alignment = 64;
  VendorConv v{.conv = conv};
  if (conv.nothing_to_sum() || device::conv_takes_padding(conv)) return v;
  v.framed = true;
  v.conv.height = (conv.out_height() - 1) * conv.stride_h + conv.reach_h();
  v.conv.width = (conv.out_width() - 1) * conv.stride_w + conv.reach_w();
  v.conv.padding_h = v.conv.padding_w = v.conv.uneven_h = v.conv.uneven_w = 0;
  v.frame = {.samples = conv.batch,
             .channels = conv.in_channels,
             .from_h = conv.height,
             .from_w = conv.width,
             .to_h = v.conv.height,
             .to_w = v.conv.width,
             .top = conv.padding_h,
             .left = conv.padding_w};
  v.frame_bytes = (v.conv.input_size() * std::int64_t{sizeof(float)} + alignment - 1) / alignment * alignment;
  return v;
}

/// Back from the frame to x.
Frame reversed(const Frame& f) {
  return {.samples = f.samples,
          .channels = f.channels,
          .from_h = f.to_h,
          .from_w = f.to_w,
          .to_h = f.from_h,
          .to_w = f.from_w,
          .top = -f.top,
          .left = -f.left};
}

/// x, or what stands for it: x in its frame.
const float* framed_operand(const Exec& exec, const VendorConv& v, const TensorView& x, void* scratch) {
  if (!v.framed) return x.as<const float>();
  copy_frame(exec, v.frame, x.as<const float>(), v.image(scratch));
  return v.image(scratch);
}

/// The forward pass, with the epilogue's bias where the layer takes one.
VendorConv forward_pass(const Exec& exec, const Call& call, const Epilogue& epilogue) {
  VendorConv v = vendor_conv(forward_conv(call));
  v.conv.bias = epilogue.bias != nullptr && device::conv_takes_bias(exec, v.conv, epilogue.relu);
  return v;
}

std::int64_t scratch_of(const Exec& exec, const VendorConv& v, ConvPass pass) {
  return v.frame_bytes + device::conv_scratch_bytes(exec, v.conv, pass);
}

} // namespace

void run_conv2d(const Exec& exec, const Call& call) {
  expect_floats(call);
  Epilogue epilogue = epilogue_of(call);
  const VendorConv v = forward_pass(exec, call, epilogue);
  const float* bias = v.conv.bias ? epilogue.bias->as<float>() : nullptr;
  const float* x = framed_operand(exec, v, call.inputs[0], call.scratch);
  device::conv_forward(exec, v.conv, x, call.inputs[1].as<float>(), call.outputs[0].as<float>(), v.rest(call.scratch),
                       bias);
  if (v.conv.bias) epilogue.bias = nullptr;
  finish(exec, epilogue, call.outputs[0]);
}

void run_conv2d_grad_input(const Exec& exec, const Call& call) {
  expect_floats(call);
  const VendorConv v = vendor_conv(grad_input_conv(call));
  auto* dx = call.outputs[0].as<float>();
  float* made = v.framed ? v.image(call.scratch) : dx;
  device::conv_backward_data(exec, v.conv, call.inputs[0].as<float>(), call.inputs[1].as<float>(), made,
                             v.rest(call.scratch));
  if (v.framed) copy_frame(exec, reversed(v.frame), made, dx);
}

void run_conv2d_grad_weight(const Exec& exec, const Call& call) {
  expect_floats(call);
  const VendorConv v = vendor_conv(grad_weight_conv(call));
  const float* x = framed_operand(exec, v, call.inputs[1], call.scratch);
  device::conv_backward_weights(exec, v.conv, call.inputs[0].as<float>(), x, call.outputs[0].as<float>(),
                                v.rest(call.scratch));
}

std::int64_t scratch_conv2d(const Exec& exec, const Call& call) {
  return scratch_of(exec, forward_pass(exec, call, epilogue_of(call)), ConvPass::forward);
}
std::int64_t scratch_conv2d_grad_input(const Exec& exec, const Call& call) {
  return scratch_of(exec, vendor_conv(grad_input_conv(call)), ConvPass::backward_data);
}
std::int64_t scratch_conv2d_grad_weight(const Exec& exec, const Call& call) {
  return scratch_of(exec, vendor_conv(grad_weight_conv(call)), ConvPass::backward_weights);
}

} // namespace soybean::kernels
