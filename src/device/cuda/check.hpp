#pragma once
// Status codes of the CUDA libraries to errors, and the choice of the accelerator a call is for. Included by the
// sources of this folder alone.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <source_location>

namespace soybean::device::cuda {

/// Throw Error(failed) with the library's own text, the call and the source line unless `code` is success.
void check(cudaError_t code, const char* call, std::source_location where = std::source_location::current());
void check(cublasStatus_t code, const char* call, std::source_location where = std::source_location::current());
void check(cudnnStatus_t code, const char* call, std::source_location where = std::source_location::current());
/// False, and nothing was queued, where the library does not offer what it was asked for; throws as check does for any
/// other failure.
bool is_offered(cudnnStatus_t code, const char* call, std::source_location where = std::source_location::current());

/// Calls of this thread are for `device` from now on.
void use(int device, std::source_location where = std::source_location::current());

} // namespace soybean::device::cuda
