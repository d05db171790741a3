#include "device/cuda/product.hpp"

#include "base/error.hpp"

namespace soybean::device::cuda {

namespace {

constexpr std::int64_t max_workspace_bytes = std::int64_t{32} << 20;

struct PreferenceTraits {
  using Handle = cublasLtMatmulPreference_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cublasLtMatmulPreferenceDestroy(handle)); }
};

/// A dense row-major matrix of `rows` × `columns` as the library sees it: its columns are our rows.
Unique<LayoutTraits> matrix(std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), columns),
        "cublasLtMatrixLayoutCreate");
  return Unique<LayoutTraits>(layout);
}

void set_bias(cublasLtMatmulDesc_t product, const void* bias) {
  check(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(&bias),
                                       sizeof(bias)),
        "cublasLtMatmulDescSetAttribute");
}

Unique<ProductTraits> product(const Matmul& s, Math math) {
  const cublasComputeType_t compute = math == Math::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t handle = nullptr;
  check(cublasLtMatmulDescCreate(&handle, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Unique<ProductTraits> result(handle);
  const cublasOperation_t first = s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          second = s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(cublasLtMatmulDescSetAttribute(handle, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)),
        "cublasLtMatmulDescSetAttribute");
  check(cublasLtMatmulDescSetAttribute(handle, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)),
        "cublasLtMatmulDescSetAttribute");
  if (s.bias) { // one for each row of the library's result, that is for each column of ours
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    check(cublasLtMatmulDescSetAttribute(handle, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)),
          "cublasLtMatmulDescSetAttribute");
    // From the place the library takes the alignment alone. NOLINTNEXTLINE(performance-no-int-to-ptr): nothing is there
    set_bias(handle, reinterpret_cast<const void*>(product_alignment));
  }
  return result;
}

Unique<PreferenceTraits> preference() {
  cublasLtMatmulPreference_t handle = nullptr;
  check(cublasLtMatmulPreferenceCreate(&handle), "cublasLtMatmulPreferenceCreate");
  Unique<PreferenceTraits> result(handle);
  const std::uint64_t workspace = max_workspace_bytes;
  check(cublasLtMatmulPreferenceSetAttribute(handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                             sizeof(workspace)),
        "cublasLtMatmulPreferenceSetAttribute");
  const std::uint32_t alignment = product_alignment; // it would take 256 for granted
  for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    check(cublasLtMatmulPreferenceSetAttribute(handle, which, &alignment, sizeof(alignment)),
          "cublasLtMatmulPreferenceSetAttribute");
  return result;
}

bool is_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % product_alignment == 0;
}

} // namespace

ProductPlan make_product_plan(cublasLtHandle_t handle, const Matmul& s, Math math) {
  ProductPlan plan{.product = product(s, math),
                   .a = s.a_transposed ? matrix(s.k, s.m) : matrix(s.m, s.k),
                   .b = s.b_transposed ? matrix(s.n, s.k) : matrix(s.k, s.n),
                   .c = matrix(s.m, s.n),
                   .bias = s.bias};
  const Unique<PreferenceTraits> wanted = preference();
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(handle, plan.product.get(), plan.b.get(), plan.a.get(), plan.c.get(),
                                       plan.c.get(), wanted.get(), 1, &found, &count),
        "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0) fail_running("cuBLASLt: no algorithm for a matrix product of m {} n {} k {}", s.m, s.n, s.k);
  check(found.state, "cublasLtMatmulAlgoGetHeuristic");
  plan.algorithm = found.algo;
  plan.workspace_bytes = static_cast<std::int64_t>(found.workspaceSize);
  return plan;
}

void run_product_plan(cublasLtHandle_t handle, const ProductPlan& p, const ProductOperands& o, cudaStream_t stream) {
  ensure(is_aligned(o.a) && is_aligned(o.b) && is_aligned(o.c) && is_aligned(o.bias),
         "operands of a matrix product that are not aligned");
  ensure((o.bias != nullptr) == p.bias, "a matrix product without its bias");
  if (p.bias) set_bias(p.product.get(), o.bias);
  const float one = 1, zero = 0;
  check(cublasLtMatmul(handle, p.product.get(), &one, o.b, p.b.get(), o.a, p.a.get(), &zero, o.c, p.c.get(), o.c,
                       p.c.get(), &p.algorithm, o.workspace, static_cast<std::size_t>(p.workspace_bytes), stream),
        "cublasLtMatmul");
}

} // namespace soybean::device::cuda
