#pragma once
// The handles and plans of one Exec. Included by dnn.cpp and its tests.
#include "device/cuda/convolution.hpp"
#include "device/cuda/layers.hpp"
#include "device/cuda/product.hpp"

#include <map>
#include <utility>

namespace soybean::device {

namespace cuda {

struct DnnTraits {
  using Handle = cudnnHandle_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudnnDestroy(handle)); }
};
struct BlasTraits {
  using Handle = cublasLtHandle_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cublasLtDestroy(handle)); }
};

} // namespace cuda

struct DnnContext::Impl {
  explicit Impl(const Exec& exec);
  cuda::ConvPlan& conv(const Conv& shape, ConvPass pass); ///< makes it where there is none yet
  const cuda::ProductPlan& product(const Matmul& shape);
  cuda::PoolPlan& pool(const Pool& shape);
  cuda::SoftmaxPlan& softmax(const Softmax& shape);

  int device;
  Math math;
  cuda::ConvLimits limits;
  Unique<cuda::DnnTraits> dnn;
  Unique<cuda::BlasTraits> blas;
  std::map<std::pair<Conv, ConvPass>, cuda::ConvPlan> convs;
  std::map<Matmul, cuda::ProductPlan> products;
  std::map<Pool, cuda::PoolPlan> pools;
  std::map<Softmax, cuda::SoftmaxPlan> softmaxes;
};

} // namespace soybean::device
