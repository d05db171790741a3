#pragma once
// Convolutions of one pass on cuDNN, found once per shape and run many times. Called by dnn.cpp.
#include "device/cuda/tensors.hpp"
#include "device/dnn.hpp"

namespace soybean::device::cuda {

struct FilterTraits {
  using Handle = cudnnFilterDescriptor_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudnnDestroyFilterDescriptor(handle)); }
};
struct ConvolutionTraits {
  using Handle = cudnnConvolutionDescriptor_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudnnDestroyConvolutionDescriptor(handle)); }
};
struct ActivationTraits {
  using Handle = cudnnActivationDescriptor_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudnnDestroyActivationDescriptor(handle)); }
};

/// What one call of the library may take.
struct ConvLimits {
  std::int64_t elements = (std::int64_t{1} << 31) - 1; ///< of an activation: it counts them in 32 bits
  std::int64_t workspace_bytes = std::int64_t{256} << 20;
};

/// A pass on activations small enough for one call. Scratch: weights in the library's layout, then its workspace.
struct ConvPlan {
  Unique<TensorTraits> x, y;
  Unique<FilterTraits> w;
  Unique<ConvolutionTraits> conv;
  Unique<TensorTraits> bias;             ///< of the forward pass: [1, out_channels, 1, 1]
  Unique<ActivationTraits> identity;     ///< the activation after a bias
  Unique<TensorTraits> plain_w, inner_w; ///< OIHW as the caller has them, OHWI as the library takes them
  bool transposes = false;               ///< the two differ
  bool fuses_bias = false;               ///< forward: adds a bias in the same call; the library has not refused yet
  std::int64_t weights_bytes = 0;        ///< of scratch
  std::int64_t workspace_bytes = 0;
  int algorithm = 0; ///< cudnnConvolution…Algo_t of the pass
  const char* name = "";

  std::int64_t scratch_bytes() const { return weights_bytes + workspace_bytes; }
};

/// The fastest deterministic algorithm by the library's own rules (no measurement: all ranks choose alike) among those
/// that keep to the limits. Throws Error when there is none.
ConvPlan make_conv_plan(cudnnHandle_t handle, const Conv& conv, ConvPass pass, Math math, const ConvLimits& limits);

/// How many images go into one call, so that no activation exceeds the limit; calls are about equally large. Throws
/// Error when one image does.
std::int64_t images_per_call(const Conv& conv, const ConvLimits& limits);

/// Operands of a pass: what it reads and what it writes; weights in the library's layout.
struct ConvOperands {
  const float* first = nullptr;
  const float* second = nullptr;
  float* result = nullptr;
  const float* bias = nullptr; ///< forward: of each channel, or none
  void* workspace = nullptr;
  bool add = false; ///< to what is in result already
};
/// first, second → result: x, w → y; dy, w → dx; dy, x → dw. A bias is added in the same call where the plan fuses it,
/// else in a further one.
void run_conv_plan(cudnnHandle_t handle, ConvPlan& plan, ConvPass pass, const ConvOperands& operands);

/// Weights from the caller's layout to the library's, and back.
void bring_weights_in(cudnnHandle_t handle, const ConvPlan& plan, const float* plain, float* inner);
void bring_weights_out(cudnnHandle_t handle, const ConvPlan& plan, const float* inner, float* plain);

} // namespace soybean::device::cuda
