// Are the byte counts honest? Open MPI's own monitoring writes down what its point-to-point layer really sent to each
// rank; the counters of Comm must say the same, to the byte. (Its MPI_T variables are not reachable in 4.1, the report
// at MPI_Finalize is.)
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <unistd.h>

namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  char line[512];
  while (fgets(line, sizeof line, pipe) != nullptr) text += line;
  EXPECT_EQ(pclose(pipe), 0) << text;
  return text;
}

/// Bytes sent to each rank by messages of the program ("E": not those of MPI's own collectives), of all ranks' reports.
std::map<int, std::int64_t> monitored_bytes(const std::filesystem::path& directory, int ranks) {
  std::map<int, std::int64_t> received;
  for (int r = 0; r < ranks; ++r) {
    std::ifstream report(directory / ("sent." + std::to_string(r) + ".prof"));
    EXPECT_TRUE(report.good()) << "no report of rank " << r;
    for (std::string line; std::getline(report, line);) {
      std::istringstream words(line);
      std::string kind;
      int from = 0, to = 0;
      std::int64_t bytes = 0;
      if (words >> kind >> from >> to >> bytes && kind == "E") received[to] += bytes;
    }
  }
  return received;
}

class Monitoring : public ::testing::TestWithParam<int> {};

TEST_P(Monitoring, TheLibraryAgreesWithTheCountersToTheByte) {
  const int ranks = GetParam();
  if (output_of("ompi_info --param pml monitoring --level 9 || true").find("pml_monitoring_filename") ==
      std::string::npos)
    GTEST_SKIP() << "this MPI has no pml_monitoring";
  const auto directory = std::filesystem::temp_directory_path() / ("soybean_monitoring_" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);

  const std::string text =
      output_of(std::string(SOYBEAN_SOURCE_DIR) + "/scripts/mpirun -n " + std::to_string(ranks) +
                " --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 --mca pml_monitoring_filename " +
                (directory / "sent").string() + " " + SOYBEAN_MONITORED_COMM);
  const std::map<int, std::int64_t> monitored = monitored_bytes(directory, ranks);
  std::filesystem::remove_all(directory);

  // Elements of one call of each kind: 5 + 9001 + 3000017.
  constexpr std::int64_t bytes = std::int64_t{4} * (5 + 9001 + 3000017);
  std::int64_t total = 0;
  std::istringstream lines(text);
  std::string rank_word, counted_word;
  int rank = 0, lines_read = 0;
  for (std::int64_t counted = 0; lines >> rank_word >> rank >> counted_word >> counted; ++lines_read) {
    EXPECT_EQ(monitored.at(rank), counted) << "rank " << rank;
    total += counted;
  }
  EXPECT_EQ(lines_read, ranks) << text;
  EXPECT_EQ(total, (2 * (ranks - 1) + (ranks - 1) + ranks) * bytes);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Monitoring, ::testing::Values(2, 3, 8));

} // namespace
