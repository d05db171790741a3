#include "device/cuda/convolution.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace soybean::device::cuda {

namespace {

constexpr std::int64_t alignment_images = 4; // so many begin 16 bytes apart, as kernels want, whatever their size
constexpr std::int64_t alignment = 64;
std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

struct WeightShape {
  int o, i, h, w;
};

WeightShape weight_shape(const Conv& c) {
  ensure(c.weight_size() <= std::numeric_limits<int>::max(), "weights that the library can not take");
  return {narrow(c.out_channels), narrow(c.in_channels / c.groups), narrow(c.kernel_h), narrow(c.kernel_w)};
}

enum class Weights : std::uint8_t { oihw, ohwi };

/// Weights as a tensor, for the transposition.
Unique<TensorTraits> weights_tensor(const WeightShape& s, Weights layout) {
  Unique<TensorTraits> tensor = make_tensor();
  const int area = s.h * s.w, step_i = layout == Weights::oihw ? area : 1, step_w = layout == Weights::oihw ? 1 : s.i;
  check(cudnnSetTensor4dDescriptorEx(tensor.get(), CUDNN_DATA_FLOAT, s.o, s.i, s.h, s.w, s.i * area, step_i,
                                     s.w * step_w, step_w),
        "cudnnSetTensor4dDescriptorEx");
  return tensor;
}

Unique<FilterTraits> filter(const WeightShape& s) {
  cudnnFilterDescriptor_t handle = nullptr;
  check(cudnnCreateFilterDescriptor(&handle), "cudnnCreateFilterDescriptor");
  Unique<FilterTraits> result(handle);
  check(cudnnSetFilter4dDescriptor(handle, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, s.o, s.i, s.h, s.w),
        "cudnnSetFilter4dDescriptor");
  return result;
}

Unique<ConvolutionTraits> convolution(const Conv& c, Math math) {
  cudnnConvolutionDescriptor_t handle = nullptr;
  check(cudnnCreateConvolutionDescriptor(&handle), "cudnnCreateConvolutionDescriptor");
  Unique<ConvolutionTraits> result(handle);
  check(cudnnSetConvolution2dDescriptor(handle, narrow(c.padding_h), narrow(c.padding_w), narrow(c.stride_h),
                                        narrow(c.stride_w), narrow(c.dilation_h), narrow(c.dilation_w),
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "cudnnSetConvolution2dDescriptor");
  check(cudnnSetConvolutionGroupCount(handle, narrow(c.groups)), "cudnnSetConvolutionGroupCount");
  check(cudnnSetConvolutionMathType(handle, math == Math::tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH),
        "cudnnSetConvolutionMathType");
  return result;
}

/// Whether an algorithm the library offers may be taken, its workspace apart.
template<class Perf>
bool is_eligible(const Perf& perf, Math math) {
  const bool rounds_more = perf.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
  const bool rounds = math == Math::fp32 && perf.mathType == CUDNN_TENSOR_OP_MATH;
  return perf.status == CUDNN_STATUS_SUCCESS && perf.determinism == CUDNN_DETERMINISTIC && !rounds_more && !rounds;
}

/// The first, hence fastest, of those offered that keeps to the limit, else the one with the least workspace; nullptr:
/// none is eligible.
template<class Perf, std::size_t N>
const Perf* choose(const std::array<Perf, N>& offered, int count, Math math, std::int64_t workspace_bytes) {
  const Perf* least = nullptr;
  for (int i = 0; i < count; ++i) {
    const Perf& perf = offered[static_cast<std::size_t>(i)];
    if (!is_eligible(perf, math)) continue;
    if (static_cast<std::int64_t>(perf.memory) <= workspace_bytes) return &perf;
    if (least == nullptr || perf.memory < least->memory) least = &perf;
  }
  return least;
}

const char* name_of(cudnnConvolutionFwdAlgo_t algorithm) {
  constexpr std::array names{"implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
                             "winograd",      "winograd_nonfused"};
  return names.at(algorithm);
}
const char* name_of(cudnnConvolutionBwdDataAlgo_t algorithm) {
  constexpr std::array names{"algorithm_0", "algorithm_1", "fft", "fft_tiling", "winograd", "winograd_nonfused"};
  return names.at(algorithm);
}
const char* name_of(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  constexpr std::array names{"algorithm_0", "algorithm_1",       "fft",       "algorithm_3",
                             "winograd",    "winograd_nonfused", "fft_tiling"};
  return names.at(algorithm);
}

/// Takes over the chosen algorithm and its kind of arithmetic.
template<class Perf>
void take(ConvPlan& plan, const Perf* chosen, Math math, const char* pass) {
  if (chosen == nullptr)
    fail_running("cuDNN: {}: no deterministic algorithm for this convolution. another version of cuDNN may have one",
                 pass);
  plan.algorithm = chosen->algo;
  plan.name = name_of(chosen->algo);
  if (math == Math::tf32)
    check(cudnnSetConvolutionMathType(plan.conv.get(), chosen->mathType), "cudnnSetConvolutionMathType");
}

/// What an algorithm needs to add a bias by itself. The library offers that without an activation for one algorithm
/// alone. With a relu it does for others, too, but only for one that turns NaN into 0, so that a run that has gone
/// wrong would look sound: relu stays a kernel of ours.
void prepare_bias(ConvPlan& plan, const Conv& c) {
  plan.bias = images(1, c.out_channels, 1, 1);
  plan.fuses_bias = plan.algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  if (!plan.fuses_bias) return;
  cudnnActivationDescriptor_t handle = nullptr;
  check(cudnnCreateActivationDescriptor(&handle), "cudnnCreateActivationDescriptor");
  plan.identity = Unique<ActivationTraits>(handle);
  check(cudnnSetActivationDescriptor(handle, CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN, 0),
        "cudnnSetActivationDescriptor");
}

void choose_forward(cudnnHandle_t handle, ConvPlan& plan, Math math, const ConvLimits& limits) {
  std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> offered{};
  int count = 0;
  check(cudnnGetConvolutionForwardAlgorithm_v7(handle, plan.x.get(), plan.w.get(), plan.conv.get(), plan.y.get(),
                                               CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, offered.data()),
        "cudnnGetConvolutionForwardAlgorithm_v7");
  const auto* chosen = choose(offered, count, math, limits.workspace_bytes);
  take(plan, chosen, math, "forward");
  std::size_t bytes = 0;
  check(cudnnGetConvolutionForwardWorkspaceSize(handle, plan.x.get(), plan.w.get(), plan.conv.get(), plan.y.get(),
                                                chosen->algo, &bytes),
        "cudnnGetConvolutionForwardWorkspaceSize");
  plan.workspace_bytes = static_cast<std::int64_t>(bytes);
}

void choose_backward_data(cudnnHandle_t handle, ConvPlan& plan, Math math, const ConvLimits& limits) {
  std::array<cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT> offered{};
  int count = 0;
  check(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, plan.w.get(), plan.y.get(), plan.conv.get(), plan.x.get(),
                                                    CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &count, offered.data()),
        "cudnnGetConvolutionBackwardDataAlgorithm_v7");
  const auto* chosen = choose(offered, count, math, limits.workspace_bytes);
  take(plan, chosen, math, "backward data");
  std::size_t bytes = 0;
  check(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, plan.w.get(), plan.y.get(), plan.conv.get(), plan.x.get(),
                                                     chosen->algo, &bytes),
        "cudnnGetConvolutionBackwardDataWorkspaceSize");
  plan.workspace_bytes = static_cast<std::int64_t>(bytes);
}

void choose_backward_weights(cudnnHandle_t handle, ConvPlan& plan, Math math, const ConvLimits& limits) {
  std::array<cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT> offered{};
  int count = 0;
  check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, plan.x.get(), plan.y.get(), plan.conv.get(), plan.w.get(),
                                                      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &count, offered.data()),
        "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  const auto* chosen = choose(offered, count, math, limits.workspace_bytes);
  take(plan, chosen, math, "backward weights");
  std::size_t bytes = 0;
  check(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, plan.x.get(), plan.y.get(), plan.conv.get(),
                                                       plan.w.get(), chosen->algo, &bytes),
        "cudnnGetConvolutionBackwardFilterWorkspaceSize");
  plan.workspace_bytes = static_cast<std::int64_t>(bytes);
}

void transform(cudnnHandle_t handle, const Unique<TensorTraits>& from_desc, const float* from,
               const Unique<TensorTraits>& to_desc, float* to) {
  const float one = 1, zero = 0;
  check(cudnnTransformTensor(handle, &one, from_desc.get(), from, &zero, to_desc.get(), to), "cudnnTransformTensor");
}

} // namespace

ConvPlan make_conv_plan(cudnnHandle_t handle, const Conv& c, ConvPass pass, Math math, const ConvLimits& limits) {
  const WeightShape shape = weight_shape(c);
  ConvPlan plan{.x = images(c.batch, c.in_channels, c.height, c.width),
                .y = images(c.batch, c.out_channels, c.out_height(), c.out_width()),
                .w = filter(shape),
                .conv = convolution(c, math)};
  plan.transposes = shape.i > 1 && shape.h * shape.w > 1;
  if (plan.transposes) {
    plan.plain_w = weights_tensor(shape, Weights::oihw);
    plan.inner_w = weights_tensor(shape, Weights::ohwi);
    plan.weights_bytes = aligned(c.weight_size() * std::int64_t{sizeof(float)});
  }
  switch (pass) {
  case ConvPass::forward:
    choose_forward(handle, plan, math, limits);
    prepare_bias(plan, c);
    break;
  case ConvPass::backward_data:
    choose_backward_data(handle, plan, math, limits);
    break;
  case ConvPass::backward_weights:
    choose_backward_weights(handle, plan, math, limits);
    break;
  }
  return plan;
}

std::int64_t images_per_call(const Conv& c, const ConvLimits& limits) {
  const std::int64_t image = std::max(c.input_size(), c.output_size()) / c.batch;
  const std::int64_t most = limits.elements / image;
  if (most == 0)
    fail("cuDNN: an image of {} elements in a convolution, got more than the {} it takes. split height or channels "
         "over ranks, or use smaller images",
         image, limits.elements);
  const std::int64_t calls = (c.batch + most - 1) / most;
  const std::int64_t images = (c.batch + calls - 1) / calls;
  if (calls == 1 || most < alignment_images) return images;
  return std::min((images + alignment_images - 1) / alignment_images, most / alignment_images) * alignment_images;
}

namespace {

/// y = x * w + bias in one call; false, and nothing is queued, where the library refuses.
bool run_biased(cudnnHandle_t handle, const ConvPlan& p, const ConvOperands& o) {
  const float one = 1, zero = 0; // times what stands in for a further term, which is not read
  return is_offered(
      cudnnConvolutionBiasActivationForward(handle, &one, p.x.get(), o.first, p.w.get(), o.second, p.conv.get(),
                                            static_cast<cudnnConvolutionFwdAlgo_t>(p.algorithm), o.workspace,
                                            static_cast<std::size_t>(p.workspace_bytes), &zero, p.y.get(), o.result,
                                            p.bias.get(), o.bias, p.identity.get(), p.y.get(), o.result),
      "cudnnConvolutionBiasActivationForward");
}

void run_forward(cudnnHandle_t handle, ConvPlan& p, const ConvOperands& o) {
  if (o.bias != nullptr && p.fuses_bias) {
    if (run_biased(handle, p, o)) return;
    p.fuses_bias = false; // nor will it the next time
  }
  const float one = 1, zero = 0;
  check(cudnnConvolutionForward(handle, &one, p.x.get(), o.first, p.w.get(), o.second, p.conv.get(),
                                static_cast<cudnnConvolutionFwdAlgo_t>(p.algorithm), o.workspace,
                                static_cast<std::size_t>(p.workspace_bytes), &zero, p.y.get(), o.result),
        "cudnnConvolutionForward");
  if (o.bias != nullptr)
    check(cudnnAddTensor(handle, &one, p.bias.get(), o.bias, &one, p.y.get(), o.result), "cudnnAddTensor");
}

} // namespace

void run_conv_plan(cudnnHandle_t handle, ConvPlan& p, ConvPass pass, const ConvOperands& o) {
  const float one = 1, beta = o.add ? 1 : 0;
  const auto bytes = static_cast<std::size_t>(p.workspace_bytes);
  switch (pass) {
  case ConvPass::forward:
    run_forward(handle, p, o);
    break;
  case ConvPass::backward_data:
    check(cudnnConvolutionBackwardData(handle, &one, p.w.get(), o.second, p.y.get(), o.first, p.conv.get(),
                                       static_cast<cudnnConvolutionBwdDataAlgo_t>(p.algorithm), o.workspace, bytes,
                                       &beta, p.x.get(), o.result),
          "cudnnConvolutionBackwardData");
    break;
  case ConvPass::backward_weights:
    check(cudnnConvolutionBackwardFilter(handle, &one, p.x.get(), o.second, p.y.get(), o.first, p.conv.get(),
                                         static_cast<cudnnConvolutionBwdFilterAlgo_t>(p.algorithm), o.workspace, bytes,
                                         &beta, p.w.get(), o.result),
          "cudnnConvolutionBackwardFilter");
    break;
  }
}

void bring_weights_in(cudnnHandle_t handle, const ConvPlan& plan, const float* plain, float* inner) {
  transform(handle, plan.plain_w, plain, plan.inner_w, inner);
}

void bring_weights_out(cudnnHandle_t handle, const ConvPlan& plan, const float* inner, float* plain) {
  transform(handle, plan.inner_w, inner, plan.plain_w, plain);
}

} // namespace soybean::device::cuda
