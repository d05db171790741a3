#include "device/cuda/layers.hpp"

namespace soybean::device::cuda {

namespace {

cudnnPoolingMode_t mode_of(PoolKind kind) {
  switch (kind) {
  case PoolKind::average:
    return CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  case PoolKind::average_in_image:
    return CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  case PoolKind::max:
    break;
  }
  return CUDNN_POOLING_MAX;
}

} // namespace

PoolPlan make_pool_plan(const Pool& p) {
  PoolPlan plan{.x = images(p.batch, p.channels, p.height, p.width),
                .y = images(p.batch, p.channels, p.out_height(), p.out_width())};
  cudnnPoolingDescriptor_t handle = nullptr;
  check(cudnnCreatePoolingDescriptor(&handle), "cudnnCreatePoolingDescriptor");
  plan.pooling = Unique<PoolingTraits>(handle);
  check(cudnnSetPooling2dDescriptor(handle, mode_of(p.kind), CUDNN_PROPAGATE_NAN, narrow(p.kernel_h),
                                    narrow(p.kernel_w), narrow(p.padding_h), narrow(p.padding_w), narrow(p.stride_h),
                                    narrow(p.stride_w)),
        "cudnnSetPooling2dDescriptor");
  return plan;
}

bool run_pool_plan(cudnnHandle_t handle, PoolPlan& p, const float* x, float* y) {
  const float one = 1, zero = 0;
  if (p.offered)
    p.offered = is_offered(cudnnPoolingForward(handle, p.pooling.get(), &one, p.x.get(), x, &zero, p.y.get(), y),
                           "cudnnPoolingForward");
  return p.offered;
}

SoftmaxPlan make_softmax_plan(const Softmax& s) {
  return {.rows = images(s.rows, s.width, 1, 1), .algorithm = s.logarithm ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE};
}

bool run_softmax_plan(cudnnHandle_t handle, SoftmaxPlan& p, const float* x, float* y) {
  const float one = 1, zero = 0;
  if (p.offered)
    p.offered = is_offered(cudnnSoftmaxForward(handle, p.algorithm, CUDNN_SOFTMAX_MODE_INSTANCE, &one, p.rows.get(), x,
                                               &zero, p.rows.get(), y),
                           "cudnnSoftmaxForward");
  return p.offered;
}

bool run_softmax_gradient(cudnnHandle_t handle, SoftmaxPlan& p, const float* dy, const float* y, float* dx) {
  const float one = 1, zero = 0;
  if (p.gradient_offered)
    p.gradient_offered = is_offered(cudnnSoftmaxBackward(handle, p.algorithm, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                                                         p.rows.get(), y, p.rows.get(), dy, &zero, p.rows.get(), dx),
                                    "cudnnSoftmaxBackward");
  return p.gradient_offered;
}

} // namespace soybean::device::cuda
