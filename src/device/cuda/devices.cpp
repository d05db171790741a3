// What the CUDA runtime says of the accelerators. SOYBEAN_CUDA_ARCHITECTURES: what the kernels were compiled for.
#include "device/devices.hpp"

#include "base/error.hpp"
#include "device/cuda/architectures.hpp"
#include "device/cuda/check.hpp"

namespace soybean::device {

namespace {

using cuda::check;

/// "GPU-…" as nvidia-smi writes it; parts of a divided accelerator have one of their own.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties;
}

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

} // namespace

std::string accelerator() {
  return "cuda";
}

int device_count() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  const bool none = code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver || code == cudaErrorStubLibrary;
  if (none) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  check(code, "cudaGetDeviceCount");
  return count;
}

std::string driver_fault() {
  int count = 0, driver = 0, runtime = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
  if (code != cudaErrorInsufficientDriver) return ""; // which also means that there is no driver
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  if (driver == 0) return "";
  return fmt::format(
      "the driver is for CUDA {}, too old for this program's CUDA {}. update the driver, or build with an "
      "older CUDA",
      cuda_version(driver), cuda_version(runtime));
}

std::string device_id(int device) {
  return uuid_text(properties_of(device).uuid);
}

DeviceFacts device_facts(int device) {
  const cudaDeviceProp properties = properties_of(device);
  cuda::use(device);
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {.name = properties.name,
          .id = uuid_text(properties.uuid),
          .major = properties.major,
          .minor = properties.minor,
          .memory = static_cast<std::int64_t>(total),
          .free = static_cast<std::int64_t>(free),
          .architectures = SOYBEAN_CUDA_ARCHITECTURES,
          .supported = cuda::has_code_for(SOYBEAN_CUDA_ARCHITECTURES, properties.major, properties.minor)};
}

std::string accelerator_versions() {
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  std::string driver_text = driver == 0 ? "no driver" : "driver for CUDA " + cuda_version(driver);
  if (driver != 0 && driver / 1000 < runtime / 1000) driver_text += " (too old)";
  const std::size_t blas = cublasLtGetVersion(), dnn = cudnnGetVersion();
  return fmt::format("CUDA {}, {}, cuBLASLt {}.{}.{}, cuDNN {}.{}.{}", cuda_version(runtime), driver_text, blas / 10000,
                     blas / 100 % 100, blas % 100, dnn / 10000, dnn / 100 % 100, dnn % 100);
}

} // namespace soybean::device
