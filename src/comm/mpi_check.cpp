#include "comm/mpi_check.hpp"

#include "base/error.hpp"

#include <sched.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

namespace soybean::comm {

void check(int code, const char* call, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail_running("{}: failed, {} ({}:{})", call, std::string_view(text, static_cast<std::size_t>(length)),
               std::filesystem::path(where.file_name()).filename().string(), where.line());
}

void CommTraits::release(Handle handle) noexcept {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&handle);
}

OwnedComm duplicate_world() {
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  OwnedComm owned(comm);
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return owned;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Backoff::pause() {
  constexpr int yields = 1000;
  if (idle_ < yields) {
    ++idle_;
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

} // namespace soybean::comm
