#include "device/exec.hpp"

#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/dnn.hpp"
#include "device/space.hpp"
#include "device/staging.hpp"
#include "device/stream.hpp"

#include <Kokkos_Core.hpp>

#include <optional>

namespace soybean::device {

namespace {

/// Kokkos may be started once per process and is shared by all: the one object that outlives its makers.
class KokkosSession {
public:
  explicit KokkosSession(int device) : ours_(!Kokkos::is_initialized()) {
    if (!ours_) return;
#ifdef KOKKOS_ENABLE_CUDA
    Kokkos::initialize(Kokkos::InitializationSettings().set_device_id(device < 0 ? 0 : device));
#else
    static_cast<void>(device);
    Kokkos::initialize();
#endif
  }
  ~KokkosSession() {
    if (ours_ && Kokkos::is_initialized()) Kokkos::finalize();
  }
  KokkosSession(const KokkosSession&) = delete;
  KokkosSession& operator=(const KokkosSession&) = delete;

private:
  bool ours_;
};

/// Kernels on the host do not need Kokkos where its default space is an accelerator, which may not be there.
void start_kokkos(int device) {
#ifdef KOKKOS_ENABLE_CUDA
  if (device < 0) return;
#endif
  static const KokkosSession session(device);
}

Kokkos::DefaultExecutionSpace make_space(const Stream& stream) {
#ifdef KOKKOS_ENABLE_CUDA
  return Kokkos::Cuda(static_cast<cudaStream_t>(stream.native()));
#else
  static_cast<void>(stream);
  return {};
#endif
}

} // namespace

struct Exec::Impl {
  explicit Impl(int device) : stream(device) {
    if (device >= 0) space.emplace(make_space(stream));
  }
  Stream stream;
  std::optional<Kokkos::DefaultExecutionSpace> space;
  std::unique_ptr<DnnContext> dnn;
  Arena staging;
};

Exec::Exec(int threads) : Exec(threads, -1) {}

Exec::Exec(int threads, int device, Math math) : threads_(threads), device_(device), math_(math) {
  ensure(threads >= 1, "a rank needs at least one thread");
  start_kokkos(device);
  impl_ = std::make_unique<Impl>(device);
}

Exec::~Exec() = default;

DnnContext& Exec::dnn() const {
  if (!impl_->dnn) impl_->dnn = std::make_unique<DnnContext>(*this);
  return *impl_->dnn;
}

Stream& Exec::stream() const noexcept {
  return impl_->stream;
}

void* staging(const Exec& exec, std::int64_t bytes) {
  Arena& buffer = exec.impl().staging;
  if (bytes > buffer.bytes()) {
    exec.fence(); // the one there is may be in use
    buffer = Arena();
    buffer = Arena(exec, bytes);
  }
  return buffer.data();
}

void Exec::fence() const {
  impl_->stream.synchronise();
}

const Kokkos::DefaultExecutionSpace& space(const Exec& exec) {
  const std::optional<Kokkos::DefaultExecutionSpace>& space = exec.impl().space;
  if (!space) throw Bug("kernels on the host have no execution space");
  return *space;
}

} // namespace soybean::device
