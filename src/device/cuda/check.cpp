#include "device/cuda/check.hpp"

#include "base/error.hpp"

#include <filesystem>
#include <string>

namespace soybean::device::cuda {

namespace {

[[noreturn]] void fail_call(const char* call, const std::string& text, const std::source_location& where) {
  fail_running("{}: failed, {} ({}:{})", call, text, std::filesystem::path(where.file_name()).filename().string(),
               where.line());
}

} // namespace

void check(cudaError_t code, const char* call, std::source_location where) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError()); // or the next call would report it again
  fail_call(call, cudaGetErrorString(code), where);
}

void check(cublasStatus_t code, const char* call, std::source_location where) {
  if (code != CUBLAS_STATUS_SUCCESS) fail_call(call, cublasLtGetStatusString(code), where);
}

void check(cudnnStatus_t code, const char* call, std::source_location where) {
  if (code == CUDNN_STATUS_SUCCESS) return;
  char detail[512] = {};
  cudnnGetLastErrorString(detail, sizeof(detail));
  std::string text = cudnnGetErrorString(code);
  if (detail[0] != '\0') text += std::string(", ") + detail;
  fail_call(call, text, where);
}

bool is_offered(cudnnStatus_t code, const char* call, std::source_location where) {
  if (CUDNN_STATUS_CATEGORY(code) == CUDNN_STATUS_NOT_SUPPORTED) return false; // with or without a reason
  check(code, call, where);
  return true;
}

void use(int device, std::source_location where) {
  check(cudaSetDevice(device), "cudaSetDevice", where);
}

} // namespace soybean::device::cuda
