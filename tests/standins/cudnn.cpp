// Stand-in for cuDNN: handles, tensors and convolutions on NHWC tensors as plain loops, and copies between layouts. See
// standins.hpp.
#include "standins/cudnn.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

using namespace soybean::standins;

/// Extents in the order k c h w.
struct cudnnFilterStruct {
  cudnnDataType_t type{};
  cudnnTensorFormat_t format{};
  std::array<std::int64_t, 4> extents{};
};
struct cudnnConvolutionStruct {
  std::int64_t padding[2]{}, stride[2]{}, dilation[2]{};
  std::int64_t groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};
struct cudnnActivationStruct {
  cudnnActivationMode_t mode{};
  cudnnNanPropagation_t nan{};
};

namespace soybean::standins {

Handles<cudnnContext>& cudnn_contexts() {
  static Handles<cudnnContext> handles("cudnn handle");
  return handles;
}
Handles<cudnnTensorStruct>& cudnn_tensors() {
  static Handles<cudnnTensorStruct> handles("tensor descriptor");
  return handles;
}

std::int64_t elements(const cudnnTensorStruct& t) {
  return t.extents[0] * t.extents[1] * t.extents[2] * t.extents[3];
}

bool is_nhwc(const cudnnTensorStruct& t) {
  const auto& [n, c, h, w] = t.extents;
  return t.steps == std::array<std::int64_t, 4>{c * h * w, 1, w * c, c};
}

bool cudnn_ready(cudnnHandle_t handle, const char* call) {
  if (!cudnn_contexts().check(handle, call)) return false;
  if (handle->device != state().device)
    fault(std::string(call) + ": the handle is of another accelerator than the one set");
  if (handle->stream == nullptr) fault(std::string(call) + ": in the default stream");
  return true;
}

bool complain(const char* call, const char* what) {
  fault(std::string(call) + ": " + what);
  return false;
}

} // namespace soybean::standins

namespace {

Handles<cudnnActivationStruct>& activations() {
  static Handles<cudnnActivationStruct> handles("activation descriptor");
  return handles;
}
Handles<cudnnFilterStruct>& filters() {
  static Handles<cudnnFilterStruct> handles("filter descriptor");
  return handles;
}
Handles<cudnnConvolutionStruct>& convolutions() {
  static Handles<cudnnConvolutionStruct> handles("convolution descriptor");
  return handles;
}

std::int64_t weights_of(const cudnnFilterStruct& w) {
  return w.extents[0] * w.extents[1] * w.extents[2] * w.extents[3];
}

/// A convolution as its descriptors tell it.
struct Shape {
  const cudnnTensorStruct &x, &y;
  const cudnnFilterStruct& w;
  const cudnnConvolutionStruct& conv;
};

bool fits(const Shape& s, const char* call) {
  if (s.x.type != CUDNN_DATA_FLOAT || s.y.type != CUDNN_DATA_FLOAT || s.w.type != CUDNN_DATA_FLOAT)
    return complain(call, "a tensor that is not of floats");
  if (!is_nhwc(s.x) || !is_nhwc(s.y) || s.w.format != CUDNN_TENSOR_NHWC)
    return complain(call, "a tensor that is not NHWC");
  if (s.w.extents[1] * s.conv.groups != s.x.extents[1] || s.w.extents[0] != s.y.extents[1] ||
      s.w.extents[0] % s.conv.groups != 0 || s.x.extents[0] != s.y.extents[0])
    return complain(call, "channels, groups or batches that do not fit together");
  for (int d = 0; d < 2; ++d) {
    const std::int64_t reach = s.conv.dilation[d] * (s.w.extents[2 + d] - 1) + 1;
    if (s.y.extents[2 + d] != (s.x.extents[2 + d] + 2 * s.conv.padding[d] - reach) / s.conv.stride[d] + 1)
      return complain(call, "an image whose size does not follow from kernel, stride and padding");
  }
  return true;
}

bool check_all(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y, cudnnFilterDescriptor_t w,
               cudnnConvolutionDescriptor_t conv, const char* call) {
  return cudnn_ready(handle, call) && cudnn_tensors().check(x, call) && cudnn_tensors().check(y, call) &&
         filters().check(w, call) && convolutions().check(conv, call) && fits({*x, *y, *w, *conv}, call);
}

/// f(x, w, y) for the positions of every product in the convolution.
template<class F>
void each_product(const Shape& s, F f) {
  const auto& [n, k, oh, ow] = s.y.extents;
  const std::int64_t c = s.w.extents[1], r = s.w.extents[2], q = s.w.extents[3], group = k / s.conv.groups;
  for (std::int64_t b = 0; b < n; ++b)
    for (std::int64_t i = 0; i < oh; ++i)
      for (std::int64_t j = 0; j < ow; ++j)
        for (std::int64_t o = 0; o < k; ++o)
          for (std::int64_t u = 0; u < r; ++u)
            for (std::int64_t v = 0; v < q; ++v) {
              const std::int64_t h = i * s.conv.stride[0] - s.conv.padding[0] + u * s.conv.dilation[0],
                                 w = j * s.conv.stride[1] - s.conv.padding[1] + v * s.conv.dilation[1];
              if (h < 0 || h >= s.x.extents[2] || w < 0 || w >= s.x.extents[3]) continue;
              const std::int64_t x_first =
                  b * s.x.steps[0] + h * s.x.steps[2] + w * s.x.steps[3] + o / group * c * s.x.steps[1];
              const std::int64_t w_first = ((o * r + u) * q + v) * c;
              const std::int64_t y_at = b * s.y.steps[0] + o + i * s.y.steps[2] + j * s.y.steps[3];
              for (std::int64_t t = 0; t < c; ++t) f(x_first + t, w_first + t, y_at);
            }
}

enum class Pass : std::uint8_t { forward, backward_data, backward_filter };

/// What the heuristics offer, best first: one that asks for much, one that is not deterministic, one that rounds to
/// half precision, one that is not supported, and two that may be taken.
template<class Perf, class Algorithm>
int offer(std::array<Algorithm, 6> algorithms, const cudnnConvolutionStruct& conv, int requested, Perf* results) {
  ++state().counts.heuristics;
  const cudnnMathType_t math = conv.math == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
  const auto perf = [&](int which, std::int64_t memory) {
    Perf p{};
    p.algo = algorithms[static_cast<std::size_t>(which)];
    p.status = CUDNN_STATUS_SUCCESS;
    p.memory = static_cast<std::size_t>(memory);
    p.determinism = CUDNN_DETERMINISTIC;
    p.mathType = math;
    return p;
  };
  std::array<Perf, 6> all{perf(0, std::int64_t{1} << 40),   perf(1, 0), perf(2, 0), perf(3, 0),
                          perf(4, state().first_workspace), perf(5, 0)};
  all[1].determinism = CUDNN_NON_DETERMINISTIC;
  all[2].mathType = CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
  all[3].status = CUDNN_STATUS_NOT_SUPPORTED;
  int count = 0;
  for (const Perf& p : all) {
    const bool takeable = &p - all.data() == 0 || &p - all.data() > 3;
    if (count < requested && (state().deterministic || !takeable)) results[count++] = p;
  }
  return count;
}

constexpr std::array forward_algorithms{CUDNN_CONVOLUTION_FWD_ALGO_FFT,
                                        CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
                                        CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
                                        CUDNN_CONVOLUTION_FWD_ALGO_DIRECT,
                                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM};
constexpr std::array data_algorithms{
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,      CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,        CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING};
constexpr std::array filter_algorithms{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
                                       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                                       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
                                       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
                                       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING};

/// Workspace of an algorithm; −1 and a fault for one that can not be taken.
template<class Algorithm>
std::int64_t workspace_of(const std::array<Algorithm, 6>& algorithms, Algorithm algorithm, const char* call) {
  if (algorithm == algorithms[0]) return std::int64_t{1} << 40;
  if (algorithm == algorithms[4]) return state().first_workspace;
  if (algorithm == algorithms[5]) return 0;
  fault(std::string(call) + ": an algorithm that was not to be taken");
  return -1;
}

/// One of the three convolutions: operands, the one that is written marked by `pass`.
struct Operands {
  const void *x, *w, *y;
  const void *alpha, *beta;
  void* workspace;
  std::size_t workspace_bytes;
  std::int64_t needed_bytes;
  const float* bias = nullptr; ///< of each channel of y
};

cudnnStatus_t run(cudnnHandle_t handle, const Shape& s, Pass pass, const Operands& o, const char* call) {
  const bool reachable = is_device_memory(o.x, elements(s.x) * float_bytes, call, "x") &&
                         is_device_memory(o.w, weights_of(s.w) * float_bytes, call, "w") &&
                         is_device_memory(o.y, elements(s.y) * float_bytes, call, "y");
  if (!reachable || o.needed_bytes < 0) return CUDNN_STATUS_BAD_PARAM;
  if (static_cast<std::int64_t>(o.workspace_bytes) < o.needed_bytes) {
    fault(std::string(call) + ": too small a workspace");
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (o.needed_bytes > 0 && !is_device_memory(o.workspace, o.needed_bytes, call, "the workspace"))
    return CUDNN_STATUS_BAD_PARAM;
  state().math = s.conv.math == CUDNN_FMA_MATH ? "fp32" : "tf32";
  const float alpha = *static_cast<const float*>(o.alpha), beta = *static_cast<const float*>(o.beta);
  // By value: a recording outlives the descriptors' present settings.
  const auto work = [x_desc = s.x, y_desc = s.y, w_desc = s.w, conv = s.conv, pass, o, alpha, beta] {
    const Shape shape{x_desc, y_desc, w_desc, conv};
    if (o.needed_bytes > 0) std::memset(o.workspace, 0xff, static_cast<std::size_t>(o.needed_bytes));
    const auto *x = static_cast<const float*>(o.x), *w = static_cast<const float*>(o.w),
               *y = static_cast<const float*>(o.y);
    const void* written = pass == Pass::forward ? o.y : pass == Pass::backward_data ? o.x : o.w;
    const std::int64_t size = pass == Pass::forward         ? elements(y_desc)
                              : pass == Pass::backward_data ? elements(x_desc)
                                                            : weights_of(w_desc);
    std::vector<double> sums(static_cast<std::size_t>(size));
    const bool tf32 = conv.math != CUDNN_FMA_MATH;
    each_product(shape, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
      if (pass == Pass::forward) sums[static_cast<std::size_t>(k)] += factor(x[i], tf32) * factor(w[j], tf32);
      if (pass == Pass::backward_data) sums[static_cast<std::size_t>(i)] += factor(y[k], tf32) * factor(w[j], tf32);
      if (pass == Pass::backward_filter) sums[static_cast<std::size_t>(j)] += factor(y[k], tf32) * factor(x[i], tf32);
    });
    const auto channels = static_cast<std::size_t>(y_desc.extents[1]);
    for (std::size_t i = 0; i < sums.size() && o.bias != nullptr; ++i) sums[i] += double(o.bias[i % channels]);
    auto* result = static_cast<float*>(const_cast<void*>(written));
    for (std::size_t i = 0; i < sums.size(); ++i)
      result[i] = static_cast<float>(alpha * sums[i] + (beta == 0 ? 0.0 : double(beta) * double(result[i])));
  };
  return enqueue(handle->stream, call, work) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

} // namespace

extern "C" {

std::size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS of a stand-in";
}

void cudnnGetLastErrorString(char* message, std::size_t size) {
  std::snprintf(message, size, "stand-in detail");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (!enter(__func__)) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = cudnn_contexts().make();
  (*handle)->device = state().device;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  static_cast<void>(enter(__func__));
  return cudnn_contexts().destroy(handle, __func__) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!enter(__func__)) return CUDNN_STATUS_BAD_PARAM;
  if (!cudnn_contexts().check(handle, __func__)) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  if (!enter(__func__)) return CUDNN_STATUS_ALLOC_FAILED;
  *tensor = cudnn_tensors().make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  static_cast<void>(enter(__func__));
  return cudnn_tensors().destroy(tensor, __func__) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int n, int c, int h,
                                           int w, int n_step, int c_step, int h_step, int w_step) {
  if (!enter(__func__)) return CUDNN_STATUS_BAD_PARAM;
  if (!cudnn_tensors().check(tensor, __func__)) return CUDNN_STATUS_BAD_PARAM;
  if (n < 1 || c < 1 || h < 1 || w < 1) fault("cudnnSetTensor4dDescriptorEx: an empty tensor");
  *tensor = {.type = type, .extents = {n, c, h, w}, .steps = {n_step, c_step, h_step, w_step}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (!enter(__func__)) return CUDNN_STATUS_BAD_PARAM;
  if (!cudnn_tensors().check(tensor, __func__)) return CUDNN_STATUS_BAD_PARAM;
  if (n < 1 || c < 1 || h < 1 || w < 1) fault("cudnnSetTensor4dDescriptor: an empty tensor");
  const std::int64_t step = format == CUDNN_TENSOR_NHWC ? c : 1, channel = format == CUDNN_TENSOR_NHWC ? 1 : h * w;
  *tensor = {.type = type, .extents = {n, c, h, w}, .steps = {std::int64_t{c} * h * w, channel, w * step, step}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  if (!enter(__func__)) return CUDNN_STATUS_ALLOC_FAILED;
  *filter = filters().make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  static_cast<void>(enter(__func__));
  return filters().destroy(filter, __func__) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  if (!enter(__func__)) return CUDNN_STATUS_BAD_PARAM;
  if (!filters().check(filter, __func__)) return CUDNN_STATUS_BAD_PARAM;
  if (k < 1 || c < 1 || h < 1 || w < 1) fault("cudnnSetFilter4dDescriptor: an empty filter");
  *filter = {.type = type, .format = format, .extents = {k, c, h, w}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  if (!enter(__func__)) return CUDNN_STATUS_ALLOC_FAILED;
  *convolution = convolutions().make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  static_cast<void>(enter(__func__));
  return convolutions().destroy(convolution, __func__) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w,
                                              int stride_h, int stride_w, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  if (!enter(__func__)) return CUDNN_STATUS_BAD_PARAM;
  if (!convolutions().check(convolution, __func__)) return CUDNN_STATUS_BAD_PARAM;
  if (mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT)
    fault("cudnnSetConvolution2dDescriptor: not a cross-correlation of floats");
  *convolution = {.padding = {pad_h, pad_w}, .stride = {stride_h, stride_w}, .dilation = {dilation_h, dilation_w}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
  if (!enter(__func__)) return CUDNN_STATUS_BAD_PARAM;
  if (!convolutions().check(convolution, __func__)) return CUDNN_STATUS_BAD_PARAM;
  convolution->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
  if (!enter(__func__)) return CUDNN_STATUS_BAD_PARAM;
  if (!convolutions().check(convolution, __func__)) return CUDNN_STATUS_BAD_PARAM;
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t conv,
                                                     const cudnnTensorDescriptor_t y, const int requested,
                                                     int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  if (!enter(__func__)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!check_all(handle, x, y, w, conv, __func__)) return CUDNN_STATUS_BAD_PARAM;
  *returned = offer(forward_algorithms, *conv, requested, results);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t y,
                                                          const cudnnConvolutionDescriptor_t conv,
                                                          const cudnnTensorDescriptor_t x, const int requested,
                                                          int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  if (!enter(__func__)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!check_all(handle, x, y, w, conv, __func__)) return CUDNN_STATUS_BAD_PARAM;
  *returned = offer(data_algorithms, *conv, requested, results);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t y,
                                                            const cudnnConvolutionDescriptor_t conv,
                                                            const cudnnFilterDescriptor_t w, const int requested,
                                                            int* returned,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  if (!enter(__func__)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!check_all(handle, x, y, w, conv, __func__)) return CUDNN_STATUS_BAD_PARAM;
  *returned = offer(filter_algorithms, *conv, requested, results);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t conv,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
  if (!enter(__func__)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!check_all(handle, x, y, w, conv, __func__)) return CUDNN_STATUS_BAD_PARAM;
  *bytes = static_cast<std::size_t>(workspace_of(forward_algorithms, algorithm, __func__));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t y,
                                                           const cudnnConvolutionDescriptor_t conv,
                                                           const cudnnTensorDescriptor_t x,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm,
                                                           std::size_t* bytes) {
  if (!enter(__func__)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!check_all(handle, x, y, w, conv, __func__)) return CUDNN_STATUS_BAD_PARAM;
  *bytes = static_cast<std::size_t>(workspace_of(data_algorithms, algorithm, __func__));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t y,
                                                             const cudnnConvolutionDescriptor_t conv,
                                                             const cudnnFilterDescriptor_t w,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                                             std::size_t* bytes) {
  if (!enter(__func__)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!check_all(handle, x, y, w, conv, __func__)) return CUDNN_STATUS_BAD_PARAM;
  *bytes = static_cast<std::size_t>(workspace_of(filter_algorithms, algorithm, __func__));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                      const void* x, const cudnnFilterDescriptor_t w_desc, const void* w,
                                      const cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, std::size_t bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y_desc, void* y) {
  if (!enter(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!check_all(handle, x_desc, y_desc, w_desc, conv, __func__)) return CUDNN_STATUS_BAD_PARAM;
  return run(handle, {*x_desc, *y_desc, *w_desc, *conv}, Pass::forward,
             {x, w, y, alpha, beta, workspace, bytes, workspace_of(forward_algorithms, algorithm, __func__)}, __func__);
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activation) {
  if (!enter(__func__)) return CUDNN_STATUS_ALLOC_FAILED;
  *activation = activations().make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activation) {
  static_cast<void>(enter(__func__));
  return activations().destroy(activation, __func__) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double) {
  if (!enter(__func__)) return CUDNN_STATUS_BAD_PARAM;
  if (!activations().check(activation, __func__)) return CUDNN_STATUS_BAD_PARAM;
  *activation = {.mode = mode, .nan = nan};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnFilterDescriptor_t w_desc, const void* w, const cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace, std::size_t bytes, const void* alpha2,
    const cudnnTensorDescriptor_t z_desc, const void* z, const cudnnTensorDescriptor_t bias_desc, const void* bias,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t y_desc, void* y) {
  if (!enter(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!check_all(handle, x_desc, y_desc, w_desc, conv, __func__) || !cudnn_tensors().check(z_desc, __func__) ||
      !cudnn_tensors().check(bias_desc, __func__) || !activations().check(activation, __func__))
    return CUDNN_STATUS_BAD_PARAM;
  if (state().not_offered.contains(__func__)) return CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
  // What the library takes, of what it takes what stands here computes: no further term, no activation.
  if (*static_cast<const float*>(alpha2) != 0 || z == nullptr || z_desc->extents != y_desc->extents)
    fault("cudnnConvolutionBiasActivationForward: a further term, or none of the result's shape");
  if (activation->mode != CUDNN_ACTIVATION_IDENTITY || activation->nan != CUDNN_NOT_PROPAGATE_NAN ||
      algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
    fault("cudnnConvolutionBiasActivationForward: an activation or an algorithm it does not go with");
  if (bias_desc->extents != std::array<std::int64_t, 4>{1, y_desc->extents[1], 1, 1} || bias_desc->steps[1] != 1 ||
      bias_desc->type != CUDNN_DATA_FLOAT || x == y)
    fault("cudnnConvolutionBiasActivationForward: a bias of another shape, or y in place of x");
  if (!is_device_memory(bias, elements(*bias_desc) * float_bytes, __func__, "the bias")) return CUDNN_STATUS_BAD_PARAM;
  const float none = 0;
  return run(handle, {*x_desc, *y_desc, *w_desc, *conv}, Pass::forward,
             {x, w, y, alpha, &none, workspace, bytes, workspace_of(forward_algorithms, algorithm, __func__),
              static_cast<const float*>(bias)},
             __func__);
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t bias_desc,
                             const void* bias, const void* beta, const cudnnTensorDescriptor_t y_desc, void* y) {
  if (!enter(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!cudnn_ready(handle, __func__) || !cudnn_tensors().check(bias_desc, __func__) ||
      !cudnn_tensors().check(y_desc, __func__))
    return CUDNN_STATUS_BAD_PARAM;
  if (bias_desc->extents != std::array<std::int64_t, 4>{1, y_desc->extents[1], 1, 1} || !is_nhwc(*y_desc) ||
      bias_desc->type != CUDNN_DATA_FLOAT || y_desc->type != CUDNN_DATA_FLOAT)
    fault("cudnnAddTensor: not a bias of the channels of floats stored NHWC");
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 1)
    fault("cudnnAddTensor: not a plain sum");
  const std::int64_t channels = y_desc->extents[1], size = elements(*y_desc);
  if (!is_device_memory(bias, channels * float_bytes, __func__, "the bias") ||
      !is_device_memory(y, size * float_bytes, __func__, "y"))
    return CUDNN_STATUS_BAD_PARAM;
  const bool done = enqueue(handle->stream, __func__, [bias, y, channels, size] {
    for (std::int64_t i = 0; i < size; ++i) static_cast<float*>(y)[i] += static_cast<const float*>(bias)[i % channels];
  });
  return done ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void* w,
                                           const cudnnTensorDescriptor_t y_desc, const void* y,
                                           const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, std::size_t bytes,
                                           const void* beta, const cudnnTensorDescriptor_t x_desc, void* x) {
  if (!enter(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!check_all(handle, x_desc, y_desc, w_desc, conv, __func__)) return CUDNN_STATUS_BAD_PARAM;
  return run(handle, {*x_desc, *y_desc, *w_desc, *conv}, Pass::backward_data,
             {x, w, y, alpha, beta, workspace, bytes, workspace_of(data_algorithms, algorithm, __func__)}, __func__);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void* x,
                                             const cudnnTensorDescriptor_t y_desc, const void* y,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t bytes, const void* beta, const cudnnFilterDescriptor_t w_desc,
                                             void* w) {
  if (!enter(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!check_all(handle, x_desc, y_desc, w_desc, conv, __func__)) return CUDNN_STATUS_BAD_PARAM;
  return run(handle, {*x_desc, *y_desc, *w_desc, *conv}, Pass::backward_filter,
             {x, w, y, alpha, beta, workspace, bytes, workspace_of(filter_algorithms, algorithm, __func__)}, __func__);
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t from_desc,
                                   const void* from, const void* beta, const cudnnTensorDescriptor_t to_desc,
                                   void* to) {
  if (!enter(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!cudnn_ready(handle, __func__) || !cudnn_tensors().check(from_desc, __func__) ||
      !cudnn_tensors().check(to_desc, __func__))
    return CUDNN_STATUS_BAD_PARAM;
  if (from_desc->extents != to_desc->extents || from_desc->type != CUDNN_DATA_FLOAT ||
      to_desc->type != CUDNN_DATA_FLOAT)
    fault("cudnnTransformTensor: tensors of different extents or not of floats");
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    fault("cudnnTransformTensor: not a copy");
  const std::int64_t bytes = elements(*from_desc) * float_bytes;
  if (!is_device_memory(from, bytes, __func__, "the source") || !is_device_memory(to, bytes, __func__, "the target"))
    return CUDNN_STATUS_BAD_PARAM;
  const bool done = enqueue(handle->stream, __func__, [a = *from_desc, b = *to_desc, from, to] {
    const auto* source = static_cast<const float*>(from);
    auto* target = static_cast<float*>(to);
    for (std::int64_t n = 0; n < a.extents[0]; ++n)
      for (std::int64_t c = 0; c < a.extents[1]; ++c)
        for (std::int64_t h = 0; h < a.extents[2]; ++h)
          for (std::int64_t w = 0; w < a.extents[3]; ++w)
            target[n * b.steps[0] + c * b.steps[1] + h * b.steps[2] + w * b.steps[3]] =
                source[n * a.steps[0] + c * a.steps[1] + h * a.steps[2] + w * a.steps[3]];
  });
  return done ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

} // extern "C"
