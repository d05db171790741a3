#pragma once
// Pooling and softmax on cuDNN, descriptors made once per shape. Called by dnn.cpp.
#include "device/cuda/tensors.hpp"
#include "device/dnn.hpp"

namespace soybean::device::cuda {

struct PoolingTraits {
  using Handle = cudnnPoolingDescriptor_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudnnDestroyPoolingDescriptor(handle)); }
};

struct PoolPlan {
  Unique<PoolingTraits> pooling;
  Unique<TensorTraits> x, y;
  bool offered = true; ///< the library has not refused yet
};
PoolPlan make_pool_plan(const Pool& pool);
/// False, and nothing is queued, where the library does not offer it.
bool run_pool_plan(cudnnHandle_t handle, PoolPlan& plan, const float* x, float* y);

struct SoftmaxPlan {
  Unique<TensorTraits> rows; ///< [rows, width, 1, 1]
  cudnnSoftmaxAlgorithm_t algorithm{};
  bool offered = true, gradient_offered = true;
};
SoftmaxPlan make_softmax_plan(const Softmax& softmax);
bool run_softmax_plan(cudnnHandle_t handle, SoftmaxPlan& plan, const float* x, float* y);
bool run_softmax_gradient(cudnnHandle_t handle, SoftmaxPlan& plan, const float* dy, const float* y, float* dx);

} // namespace soybean::device::cuda
