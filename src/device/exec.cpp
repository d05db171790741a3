#include "device/exec.hpp"

#include "base/error.hpp"
#include "device/dnn.hpp"

#include <Kokkos_Core.hpp>
#include <omp.h>

namespace soybean::device {

namespace {

/// Kokkos may be started once per process and is shared by all: the one object that outlives its makers.
class KokkosSession {
public:
  KokkosSession() : ours_(!Kokkos::is_initialized()) {
    if (ours_) Kokkos::initialize();
  }
  ~KokkosSession() {
    if (ours_ && Kokkos::is_initialized()) Kokkos::finalize();
  }
  KokkosSession(const KokkosSession&) = delete;
  KokkosSession& operator=(const KokkosSession&) = delete;

private:
  bool ours_;
};

void start_kokkos() {
  static const KokkosSession session;
}

} // namespace

Exec::Exec(int threads) : threads_(threads) {
  ensure(threads >= 1, "a rank needs at least one thread");
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  start_kokkos();
  dnn_ = std::make_unique<DnnContext>(threads);
}

Exec::~Exec() = default;

void Exec::fence() const {
  Kokkos::fence();
}

} // namespace soybean::device
