#pragma once
// What the sources of cuDNN's stand-in share: its handles and tensors. Included by them alone.
#include "standins/state.hpp"

#include <cudnn.h>

#include <array>

struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};
/// Extents and steps in the order n c h w.
struct cudnnTensorStruct {
  cudnnDataType_t type{};
  std::array<std::int64_t, 4> extents{}, steps{};
};

namespace soybean::standins {

Handles<cudnnContext>& cudnn_contexts();
Handles<cudnnTensorStruct>& cudnn_tensors();

constexpr std::int64_t float_bytes = sizeof(float);
std::int64_t elements(const cudnnTensorStruct& t);
bool is_nhwc(const cudnnTensorStruct& t); ///< and dense

/// Whether work can be queued with the handle; otherwise, and where it would go to a wrong place, that is a fault.
bool cudnn_ready(cudnnHandle_t handle, const char* call);
/// A fault of `call`; false.
bool complain(const char* call, const char* what);

} // namespace soybean::standins
