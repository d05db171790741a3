// Stand-in for cuDNN: pooling and softmax as plain loops. See standins.hpp.
#include "standins/cudnn.hpp"

#include <cmath>
#include <limits>

using namespace soybean::standins;

struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode{};
  cudnnNanPropagation_t nan{};
  std::int64_t window[2]{}, padding[2]{}, stride[2]{};
};

namespace {

Handles<cudnnPoolingStruct>& poolings() {
  static Handles<cudnnPoolingStruct> handles("pooling descriptor");
  return handles;
}

bool are_floats(const cudnnTensorStruct& a, const cudnnTensorStruct& b, const char* call) {
  if (a.type != CUDNN_DATA_FLOAT || b.type != CUDNN_DATA_FLOAT) return complain(call, "a tensor that is not of floats");
  if (!is_nhwc(a) || !is_nhwc(b)) return complain(call, "a tensor that is not NHWC");
  return true;
}

bool is_plain(const void* alpha, const void* beta, const char* call) {
  if (*static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0) return true;
  return complain(call, "a result that is scaled or added");
}

bool fits(const cudnnPoolingStruct& p, const cudnnTensorStruct& x, const cudnnTensorStruct& y, const char* call) {
  if (x.extents[0] != y.extents[0] || x.extents[1] != y.extents[1])
    return complain(call, "batches or channels that do not fit together");
  for (std::size_t d = 0; d < 2; ++d) {
    if (p.padding[d] >= p.window[d]) return complain(call, "a window in the padding alone");
    if (y.extents[2 + d] != (x.extents[2 + d] + 2 * p.padding[d] - p.window[d]) / p.stride[d] + 1)
      return complain(call, "an image whose size does not follow from window, stride and padding");
  }
  return p.mode == CUDNN_POOLING_MAX && p.nan != CUDNN_PROPAGATE_NAN ? complain(call, "a maximum that hides NaN")
                                                                     : true;
}

/// One window's result: channel c of image n.
float pooled(const cudnnPoolingStruct& p, const cudnnTensorStruct& x, const float* image, std::int64_t i,
             std::int64_t j) {
  double sum = 0;
  float most = -std::numeric_limits<float>::infinity();
  std::int64_t inside = 0;
  for (std::int64_t u = 0; u < p.window[0]; ++u)
    for (std::int64_t v = 0; v < p.window[1]; ++v) {
      const std::int64_t h = i * p.stride[0] - p.padding[0] + u, w = j * p.stride[1] - p.padding[1] + v;
      if (h < 0 || h >= x.extents[2] || w < 0 || w >= x.extents[3]) continue;
      const float value = image[h * x.steps[2] + w * x.steps[3]];
      most = value > most || std::isnan(value) ? value : most;
      sum += value;
      ++inside;
    }
  if (p.mode == CUDNN_POOLING_MAX) return most;
  const bool whole = p.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  return static_cast<float>(sum / static_cast<double>(whole ? p.window[0] * p.window[1] : inside));
}

void pool(const cudnnPoolingStruct& p, const cudnnTensorStruct& x, const float* from, const cudnnTensorStruct& y,
          float* to) {
  for (std::int64_t n = 0; n < y.extents[0]; ++n)
    for (std::int64_t c = 0; c < y.extents[1]; ++c)
      for (std::int64_t i = 0; i < y.extents[2]; ++i)
        for (std::int64_t j = 0; j < y.extents[3]; ++j)
          to[n * y.steps[0] + c * y.steps[1] + i * y.steps[2] + j * y.steps[3]] =
              pooled(p, x, from + n * x.steps[0] + c * x.steps[1], i, j);
}

/// Rows of a tensor that are normalised by themselves: [n][c·h·w].
struct Rows {
  std::int64_t rows, width;
};

/// What both directions of softmax ask for; `work` gets the rows.
template<class F>
cudnnStatus_t run_rows(cudnnHandle_t handle, const cudnnTensorStruct& t, const char* call, F work) {
  const Rows r{t.extents[0], t.steps[0]};
  return enqueue(handle->stream, call,
                 [work, r] {
                   for (std::int64_t row = 0; row < r.rows; ++row) work(row * r.width, r.width);
                 })
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

bool is_known(cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode, const char* call) {
  if (mode == CUDNN_SOFTMAX_MODE_INSTANCE && algorithm != CUDNN_SOFTMAX_FAST) return true;
  return complain(call, "a softmax that overflows or is not over whole rows");
}

} // namespace

extern "C" {

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* pooling) {
  if (!enter(__func__)) return CUDNN_STATUS_ALLOC_FAILED;
  *pooling = poolings().make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t pooling) {
  static_cast<void>(enter(__func__));
  return poolings().destroy(pooling, __func__) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int window_h, int window_w, int padding_h,
                                          int padding_w, int stride_h, int stride_w) {
  if (!enter(__func__)) return CUDNN_STATUS_BAD_PARAM;
  if (!poolings().check(pooling, __func__)) return CUDNN_STATUS_BAD_PARAM;
  if (window_h < 1 || window_w < 1 || stride_h < 1 || stride_w < 1 || padding_h < 0 || padding_w < 0)
    fault("cudnnSetPooling2dDescriptor: no window");
  *pooling = {.mode = mode,
              .nan = nan,
              .window = {window_h, window_w},
              .padding = {padding_h, padding_w},
              .stride = {stride_h, stride_w}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling, const void* alpha,
                                  const cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                  const cudnnTensorDescriptor_t y_desc, void* y) {
  if (!enter(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!cudnn_ready(handle, __func__) || !poolings().check(pooling, __func__) ||
      !cudnn_tensors().check(x_desc, __func__) || !cudnn_tensors().check(y_desc, __func__))
    return CUDNN_STATUS_BAD_PARAM;
  if (state().not_offered.contains(__func__)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!are_floats(*x_desc, *y_desc, __func__) || !is_plain(alpha, beta, __func__) ||
      !fits(*pooling, *x_desc, *y_desc, __func__) ||
      !is_device_memory(x, elements(*x_desc) * float_bytes, __func__, "x") ||
      !is_device_memory(y, elements(*y_desc) * float_bytes, __func__, "y"))
    return CUDNN_STATUS_BAD_PARAM;
  const bool done = enqueue(handle->stream, __func__, [p = *pooling, a = *x_desc, b = *y_desc, x, y] {
    pool(p, a, static_cast<const float*>(x), b, static_cast<float*>(y));
  });
  return done ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                                  const void* alpha, const cudnnTensorDescriptor_t x_desc, const void* x,
                                  const void* beta, const cudnnTensorDescriptor_t y_desc, void* y) {
  if (!enter(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!cudnn_ready(handle, __func__) || !cudnn_tensors().check(x_desc, __func__) ||
      !cudnn_tensors().check(y_desc, __func__))
    return CUDNN_STATUS_BAD_PARAM;
  if (state().not_offered.contains(__func__)) return CUDNN_STATUS_NOT_SUPPORTED;
  const std::int64_t bytes = elements(*x_desc) * float_bytes;
  if (x_desc->extents != y_desc->extents) complain(__func__, "tensors of different extents");
  if (!are_floats(*x_desc, *y_desc, __func__) || !is_plain(alpha, beta, __func__) ||
      !is_known(algorithm, mode, __func__) || !is_device_memory(x, bytes, __func__, "x") ||
      !is_device_memory(y, bytes, __func__, "y"))
    return CUDNN_STATUS_BAD_PARAM;
  return run_rows(handle, *x_desc, __func__, [algorithm, x, y](std::int64_t begin, std::int64_t width) {
    const float* from = static_cast<const float*>(x) + begin;
    float* to = static_cast<float*>(y) + begin;
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t k = 0; k < width; ++k) most = std::max(most, double(from[k]));
    for (std::int64_t k = 0; k < width; ++k) sum += std::exp(from[k] - most);
    for (std::int64_t k = 0; k < width; ++k) {
      const double above = from[k] - most;
      to[k] = static_cast<float>(algorithm == CUDNN_SOFTMAX_LOG ? above - std::log(sum) : std::exp(above) / sum);
    }
  });
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                                   const void* alpha, const cudnnTensorDescriptor_t y_desc, const void* y,
                                   const cudnnTensorDescriptor_t dy_desc, const void* dy, const void* beta,
                                   const cudnnTensorDescriptor_t dx_desc, void* dx) {
  if (!enter(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!cudnn_ready(handle, __func__) || !cudnn_tensors().check(y_desc, __func__) ||
      !cudnn_tensors().check(dy_desc, __func__) || !cudnn_tensors().check(dx_desc, __func__))
    return CUDNN_STATUS_BAD_PARAM;
  if (state().not_offered.contains(__func__)) return CUDNN_STATUS_NOT_SUPPORTED;
  const std::int64_t bytes = elements(*y_desc) * float_bytes;
  if (y_desc->extents != dy_desc->extents || y_desc->extents != dx_desc->extents || dx == y)
    complain(__func__, "tensors of different extents, or the gradient in place of y");
  if (!are_floats(*y_desc, *dy_desc, __func__) || !are_floats(*dx_desc, *dx_desc, __func__) ||
      !is_plain(alpha, beta, __func__) || !is_known(algorithm, mode, __func__) ||
      !is_device_memory(y, bytes, __func__, "y") || !is_device_memory(dy, bytes, __func__, "dy") ||
      !is_device_memory(dx, bytes, __func__, "dx"))
    return CUDNN_STATUS_BAD_PARAM;
  return run_rows(handle, *y_desc, __func__, [algorithm, y, dy, dx](std::int64_t begin, std::int64_t width) {
    const float *value = static_cast<const float*>(y) + begin, *above = static_cast<const float*>(dy) + begin;
    float* to = static_cast<float*>(dx) + begin;
    const bool log = algorithm == CUDNN_SOFTMAX_LOG;
    double sum = 0;
    for (std::int64_t k = 0; k < width; ++k) sum += log ? above[k] : double(above[k]) * value[k];
    for (std::int64_t k = 0; k < width; ++k)
      to[k] = static_cast<float>(log ? above[k] - std::exp(double(value[k])) * sum : value[k] * (above[k] - sum));
  });
}

} // extern "C"
