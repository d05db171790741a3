#pragma once
// Owns MPI_Init_thread and MPI_Finalize, and ends all ranks on failure. Made once, in src/app and the tests' mains.
#include <string>
#include <vector>

namespace soybean::comm {

class MpiSession {
public:
  /// MPI_THREAD_SERIALIZED where the library has it, so that transfers may progress beside kernels; else FUNNELED.
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// Ends every rank with this exit code.
  [[noreturn]] static void abort(int code);

private:
  int rank_ = 0, size_ = 1;
};

/// Host name of every rank, in rank order (collective).
std::vector<std::string> host_names();
/// Ranks per host in the order hosts first appear.
std::vector<int> ranks_per_host(const std::vector<std::string>& hosts);
std::string mpi_library_version();

} // namespace soybean::comm
