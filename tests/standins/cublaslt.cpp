// Stand-in for cuBLASLt: matrix products as plain loops over the library's column-major matrices. See standins.hpp.
#include "standins/state.hpp"

#include <cublasLt.h>

#include <cmath>
#include <cstring>
#include <limits>

using soybean::standins::enqueue;
using soybean::standins::enter;
using soybean::standins::factor;
using soybean::standins::fault;
using soybean::standins::Handles;
using soybean::standins::is_device_memory;
using soybean::standins::state;

struct cublasLtContext {
  int device = 0;
};

namespace {

/// The library's descriptors are structures of numbers; ours lie in them.
struct Product : cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute{};
  cudaDataType_t scale{};
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct Layout : cublasLtMatrixLayoutOpaque_t {
  cudaDataType type{};
  std::int64_t rows = 0, columns = 0, step = 0;
};
struct Preference : cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

Handles<cublasLtContext>& contexts() {
  static Handles<cublasLtContext> handles("cublasLt handle");
  return handles;
}
Handles<Product>& product_handles() {
  static Handles<Product> handles("product descriptor");
  return handles;
}
Handles<Layout>& layouts() {
  static Handles<Layout> handles("matrix layout");
  return handles;
}
Handles<Preference>& preferences() {
  static Handles<Preference> handles("product preference");
  return handles;
}

/// What an algorithm was found for; kept in its data.
struct Found {
  std::int64_t m, n, k, workspace;
  std::int32_t a, b, epilogue;
  std::uint32_t alignment;
};

/// Checks descriptors and that the operands fit together; gives m, n, k.
bool describe(cublasLtMatmulDesc_t desc, const cublasLtMatrixLayout_t (&matrices)[4], const char* call, Found* found) {
  const auto* product = static_cast<Product*>(desc);
  if (!product_handles().check(static_cast<Product*>(desc), call)) return false;
  for (cublasLtMatrixLayout_t matrix : matrices)
    if (!layouts().check(static_cast<Layout*>(matrix), call)) return false;
  const auto &a = *static_cast<Layout*>(matrices[0]), &b = *static_cast<Layout*>(matrices[1]),
             &c = *static_cast<Layout*>(matrices[2]), &d = *static_cast<Layout*>(matrices[3]);
  const bool at = product->a == CUBLAS_OP_T, bt = product->b == CUBLAS_OP_T;
  *found = {.m = at ? a.columns : a.rows,
            .n = bt ? b.rows : b.columns,
            .k = at ? a.rows : a.columns,
            .workspace = 0,
            .a = product->a,
            .b = product->b,
            .epilogue = product->epilogue,
            .alignment = 0};
  if (product->epilogue != CUBLASLT_EPILOGUE_DEFAULT && product->epilogue != CUBLASLT_EPILOGUE_BIAS)
    fault(std::string(call) + ": an epilogue other than a bias");
  if ((product->epilogue == CUBLASLT_EPILOGUE_BIAS) != (product->bias != nullptr))
    fault(std::string(call) + ": a bias without its epilogue, or the other way round");
  const bool fits = (bt ? b.columns : b.rows) == found->k && c.rows == found->m && c.columns == found->n &&
                    d.rows == found->m && d.columns == found->n && c.step == d.step;
  if (!fits) fault(std::string(call) + ": matrices that do not fit together");
  for (const Layout* matrix : {&a, &b, &c, &d}) {
    if (matrix->type != CUDA_R_32F) fault(std::string(call) + ": a matrix that is not of floats");
    if (matrix->step < matrix->rows || matrix->rows < 1 || matrix->columns < 1)
      fault(std::string(call) + ": a leading dimension shorter than a column, or an empty matrix");
  }
  const bool known = product->compute == CUBLAS_COMPUTE_32F || product->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (!known || product->scale != CUDA_R_32F) fault(std::string(call) + ": another arithmetic than that of floats");
  state().math = product->compute == CUBLAS_COMPUTE_32F ? "fp32" : "tf32";
  return fits;
}

std::int64_t bytes_of(const Layout& matrix) {
  return ((matrix.columns - 1) * matrix.step + matrix.rows) * std::int64_t{sizeof(float)};
}

/// Column-major operands, element (row, column) or, transposed, (column, row).
struct Matrix {
  const float* data;
  std::int64_t step;
  bool transposed, tf32;
  double at(std::int64_t row, std::int64_t column) const {
    return factor(transposed ? data[row * step + column] : data[column * step + row], tf32);
  }
};

} // namespace

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "stand-in error";
}

std::size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!enter(__func__)) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = contexts().make();
  (*handle)->device = state().device;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  static_cast<void>(enter(__func__));
  return contexts().destroy(handle, __func__) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  if (!enter(__func__)) return CUBLAS_STATUS_ALLOC_FAILED;
  Product* product = product_handles().make();
  product->compute = compute;
  product->scale = scale;
  *desc = product;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  static_cast<void>(enter(__func__));
  const bool done = product_handles().destroy(static_cast<Product*>(desc), __func__);
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  if (!enter(__func__)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!product_handles().check(static_cast<Product*>(desc), __func__)) return CUBLAS_STATUS_INVALID_VALUE;
  auto* product = static_cast<Product*>(desc);
  const auto set = [&](auto& target) {
    if (bytes != sizeof(target)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(static_cast<void*>(&target), value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(product->a);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(product->b);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(product->epilogue);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(product->bias);
  default:
    return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* result, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t step) {
  if (!enter(__func__)) return CUBLAS_STATUS_ALLOC_FAILED;
  Layout* layout = layouts().make();
  layout->type = type;
  layout->rows = static_cast<std::int64_t>(rows);
  layout->columns = static_cast<std::int64_t>(columns);
  layout->step = step;
  *result = layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  static_cast<void>(enter(__func__));
  const bool done = layouts().destroy(static_cast<Layout*>(layout), __func__);
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  if (!enter(__func__)) return CUBLAS_STATUS_ALLOC_FAILED;
  *preference = preferences().make();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  static_cast<void>(enter(__func__));
  const bool done = preferences().destroy(static_cast<Preference*>(preference), __func__);
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  if (!enter(__func__)) return CUBLAS_STATUS_INVALID_VALUE;
  auto* preference = static_cast<Preference*>(handle);
  if (!preferences().check(preference, __func__)) return CUBLAS_STATUS_INVALID_VALUE;
  void* target = nullptr;
  std::size_t size = sizeof(std::uint32_t);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    target = &preference->workspace;
    size = sizeof(preference->workspace);
  } else if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
             attribute <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) {
    target = &preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
  }
  if (target == nullptr || bytes != size) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(target, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t* results, int* returned) {
  if (!enter(__func__)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *returned = 0;
  ++state().counts.heuristics;
  Found found{};
  if (!contexts().check(handle, __func__) || !describe(desc, {a, b, c, d}, __func__, &found) || requested < 1 ||
      !preferences().check(static_cast<Preference*>(preference), __func__))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!state().deterministic) return CUBLAS_STATUS_SUCCESS; // nothing that may be taken
  const auto& wanted = *static_cast<Preference*>(preference);
  found.workspace = found.k % 2 == 0 ? 0 : 256 * (1 + found.m % 3); // some want one, some do not
  if (static_cast<std::uint64_t>(found.workspace) > wanted.workspace) found.workspace = 0;
  found.alignment = wanted.alignment[0];
  results[0] = {};
  std::memcpy(results[0].algo.data, &found, sizeof(found));
  static_assert(sizeof(found) <= sizeof(results[0].algo.data));
  results[0].workspaceSize = static_cast<std::size_t>(found.workspace);
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (!enter(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  Found found{}, expected{};
  if (!contexts().check(handle, __func__) ||
      !describe(desc, {a_layout, b_layout, c_layout, d_layout}, __func__, &found))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&expected, algorithm->data, sizeof(expected));
  if (expected.m != found.m || expected.n != found.n || expected.k != found.k || expected.a != found.a ||
      expected.b != found.b || expected.epilogue != found.epilogue)
    fault("cublasLtMatmul: the algorithm was found for another product");
  if (handle->device != state().device) fault("cublasLtMatmul: the handle is of another accelerator than the one set");
  const auto &la = *static_cast<Layout*>(a_layout), &lb = *static_cast<Layout*>(b_layout),
             &ld = *static_cast<Layout*>(d_layout);
  bool reachable = is_device_memory(a, bytes_of(la), __func__, "a") &&
                   is_device_memory(b, bytes_of(lb), __func__, "b") && is_device_memory(d, bytes_of(ld), __func__, "d");
  const auto* bias = static_cast<const float*>(static_cast<Product*>(desc)->bias);
  if (bias != nullptr)
    reachable = is_device_memory(bias, found.m * std::int64_t{sizeof(float)}, __func__, "the bias") && reachable;
  for (const void* data : {a, b, static_cast<const void*>(d), static_cast<const void*>(bias)})
    if (reinterpret_cast<std::uintptr_t>(data) % expected.alignment != 0)
      fault("cublasLtMatmul: an operand less aligned than the algorithm expects");
  if (static_cast<std::int64_t>(workspace_bytes) < expected.workspace) fault("cublasLtMatmul: too small a workspace");
  if (expected.workspace > 0)
    reachable = is_device_memory(workspace, expected.workspace, __func__, "the workspace") && reachable;
  const float scale = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
  if (kept != 0 && c != d) fault("cublasLtMatmul: c is not d");
  if (!reachable) return CUBLAS_STATUS_INVALID_VALUE;
  const bool tf32 = state().math == "tf32";
  const Matrix ma{static_cast<const float*>(a), la.step, found.a == CUBLAS_OP_T, tf32},
      mb{static_cast<const float*>(b), lb.step, found.b == CUBLAS_OP_T, tf32};
  const bool done = enqueue(stream, __func__, [=, step = ld.step] {
    if (expected.workspace > 0) std::memset(workspace, 0xff, static_cast<std::size_t>(expected.workspace));
    auto* out = static_cast<float*>(d);
    for (std::int64_t j = 0; j < found.n; ++j)
      for (std::int64_t i = 0; i < found.m; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < found.k; ++k) sum += ma.at(i, k) * mb.at(k, j);
        float& result = out[j * step + i];
        const double shift = bias != nullptr ? double(bias[i]) : 0.0;
        result = static_cast<float>(scale * sum + (kept == 0 ? 0.0 : double(kept) * double(result)) + shift);
      }
  });
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

} // extern "C"
