#include "comm/mpi_session.hpp"

#include "base/error.hpp"
#include "comm/mpi_check.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

namespace soybean::comm {

MpiSession::MpiSession(int* argc, char*** argv) {
  int provided = 0;
  check(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED)
    fail("MPI: MPI_Init_thread, got thread level {} expected MPI_THREAD_FUNNELED. Use an MPI library built with "
         "thread support",
         provided);
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
}

// MPI_Finalize waits for all ranks; during unwinding the others may never come.
MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() > 0) abort(static_cast<int>(ExitCode::failed));
  MPI_Finalize();
}

void MpiSession::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

std::vector<std::string> host_names() {
  int size = 1, length = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  constexpr int room = MPI_MAX_PROCESSOR_NAME;
  std::string mine(room, '\0');
  check(MPI_Get_processor_name(mine.data(), &length), "MPI_Get_processor_name");
  std::string all(static_cast<std::size_t>(size) * room, '\0');
  check(MPI_Allgather(mine.data(), room, MPI_CHAR, all.data(), room, MPI_CHAR, MPI_COMM_WORLD), "MPI_Allgather");
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) names.emplace_back(all.c_str() + static_cast<std::size_t>(r) * room);
  return names;
}

std::vector<int> ranks_per_host(const std::vector<std::string>& hosts) {
  std::vector<std::string> seen;
  std::vector<int> ranks;
  for (const std::string& host : hosts) {
    const auto found = std::find(seen.begin(), seen.end(), host);
    if (found == seen.end()) {
      seen.push_back(host);
      ranks.push_back(1);
    } else {
      ++ranks[static_cast<std::size_t>(found - seen.begin())];
    }
  }
  return ranks;
}

std::string mpi_library_version() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  text.resize(static_cast<std::size_t>(length));
  return text.substr(0, text.find_first_of(",\n"));
}

} // namespace soybean::comm
