#include "comm/mpi_device.hpp"

#include "comm/mpi.hpp"
#include "comm/staged.hpp"
#include "device/arena.hpp"
#include "device/memory.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace soybean::comm {

namespace {

/// A function of the MPI library that not every library has.
template<class F>
F* find_function(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

/// Every rank sends its number to the next one. False where something else arrives.
bool neighbours_hear(int device) {
  constexpr std::int64_t count = 4096;
  const device::Exec exec(1, device);
  StagedComm comm(std::make_unique<MpiComm>(MpiOptions{}), {.device_exchanges = true});
  const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<std::int32_t> sent(count, comm.rank()), got(count, -1);
  const device::Arena out(exec, count * size_of(DType::i32)), in(exec, count * size_of(DType::i32));
  device::copy_from_host(exec, out.data(), sent.data(), out.bytes());
  Collective exchange{.kind = Kind::exchange, .dtype = DType::i32, .label = "test of MPI on device memory"};
  exchange.sends = {{next, out.data(), count}};
  exchange.receives = {{before, in.data(), count}};
  exchange.control = true;
  comm.wait(comm.start(exchange, exec));
  device::copy_to_host(exec, got.data(), in.data(), in.bytes());
  return got == std::vector<std::int32_t>(count, before);
}

} // namespace

bool mpi_takes_device_memory() {
  if (const auto open_mpi = find_function<int()>("MPIX_Query_cuda_support")) return open_mpi() == 1;
  if (const auto mpich = find_function<int(int, int*)>("MPIX_GPU_query_support")) {
    constexpr int cuda = 0;
    int supported = 0;
    return mpich(cuda, &supported) == MPI_SUCCESS && supported != 0;
  }
  const char* cray = std::getenv("MPICH_GPU_SUPPORT_ENABLED");
  return cray != nullptr && std::strcmp(cray, "1") == 0;
}

bool exchanges_device_memory(int device) {
  MpiComm control({});
  if (max(control, mpi_takes_device_memory() ? 0.0 : 1.0) > 0) return false;
  return max(control, neighbours_hear(device) ? 0.0 : 1.0) == 0;
}

} // namespace soybean::comm
