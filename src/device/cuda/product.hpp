#pragma once
// Matrix products on cuBLASLt, chosen once per shape. Called by dnn.cpp.
#include "base/handles.hpp"
#include "device/cuda/check.hpp"
#include "device/dnn.hpp"

namespace soybean::device::cuda {

struct ProductTraits {
  using Handle = cublasLtMatmulDesc_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cublasLtMatmulDescDestroy(handle)); }
};
struct LayoutTraits {
  using Handle = cublasLtMatrixLayout_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cublasLtMatrixLayoutDestroy(handle)); }
};

/// The library's matrices are column-major, so it is asked for cᵀ [n, m] = op(b)ᵀ op(a)ᵀ: its first operand is b.
struct ProductPlan {
  Unique<ProductTraits> product;
  Unique<LayoutTraits> a, b, c;
  bool bias = false;
  cublasLtMatmulAlgo_t algorithm{};
  std::int64_t workspace_bytes = 0;
};

/// By the library's own rules, without measurement: all ranks choose alike. Throws Error when it knows no way.
ProductPlan make_product_plan(cublasLtHandle_t handle, const Matmul& shape, Math math);

/// Operands begin at multiples of this many bytes.
constexpr std::int64_t product_alignment = 16;

struct ProductOperands {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  const float* bias = nullptr;
  void* workspace = nullptr;
};
void run_product_plan(cublasLtHandle_t handle, const ProductPlan& plan, const ProductOperands& operands,
                      cudaStream_t stream);

} // namespace soybean::device::cuda
