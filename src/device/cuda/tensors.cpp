#include "device/cuda/tensors.hpp"

#include "base/error.hpp"

#include <limits>

namespace soybean::device::cuda {

int narrow(std::int64_t value) {
  ensure(value >= 0 && value <= std::numeric_limits<int>::max(), "an extent that the library can not take");
  return static_cast<int>(value);
}

Unique<TensorTraits> make_tensor() {
  cudnnTensorDescriptor_t tensor = nullptr;
  check(cudnnCreateTensorDescriptor(&tensor), "cudnnCreateTensorDescriptor");
  return Unique<TensorTraits>(tensor);
}

Unique<TensorTraits> images(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  Unique<TensorTraits> tensor = make_tensor();
  check(cudnnSetTensor4dDescriptor(tensor.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, narrow(n), narrow(c), narrow(h),
                                   narrow(w)),
        "cudnnSetTensor4dDescriptor");
  return tensor;
}

} // namespace soybean::device::cuda
