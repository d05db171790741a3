#pragma once
// The accelerators this process may use. One source per vendor (host/devices.cpp: none, cuda/devices.cpp). Called by
// runtime's binding and preflight.
#include <cstdint>
#include <string>

namespace soybean::device {

/// The build's accelerators: "cuda", or "" where there are none.
std::string accelerator();
/// How many this process sees (CUDA_VISIBLE_DEVICES and the launcher's limits applied); 0 without a driver or with one
/// that is too old.
int device_count();
/// Why there is none, where the driver is too old for this program: both versions and what to do, one line; else "".
std::string driver_fault();

/// The same for one accelerator in all processes of a host. Takes up nothing on it.
std::string device_id(int device);

struct DeviceFacts {
  std::string name;
  std::string id;            ///< device_id
  int major = 0, minor = 0;  ///< compute capability
  std::int64_t memory = 0;   ///< bytes in all
  std::int64_t free = 0;     ///< bytes free now
  std::string architectures; ///< that this program was compiled for; empty: any
  bool supported = true;     ///< this program has code for it
};
/// Takes up what a process takes up on an accelerator it works on. Throws Error when the device does not answer.
DeviceFacts device_facts(int device);

/// Versions of driver and libraries, one line for reports; "" in a build without accelerators.
std::string accelerator_versions();

} // namespace soybean::device
