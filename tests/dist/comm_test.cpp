// The MPI back ends beyond what collectives_test.cpp holds all to: bits that do not depend on timing, the watchdog,
// control traffic, faults.
#include "comm/comm.hpp"

#include "base/error.hpp"
#include "comm/mpi.hpp"
#include "comm/mpi_session.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

namespace {

using namespace soybean;
using namespace soybean::comm;

int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// One value of a term: integers, so that every order of sums gives the same and results can be compared exactly.
template<class T>
T term(std::int64_t rank, std::int64_t i, std::int64_t salt) {
  return static_cast<T>((rank * 31 + i * 7 + salt * 13) % 97 - 40);
}

/// Irrational terms: the bits tell the order of the sums.
std::vector<float> reduced_bits(const MpiOptions& options, std::int64_t n, int delay_ms) {
  MpiComm comm(options);
  const device::Exec exec(1);
  std::vector<float> data(n);
  std::mt19937 random(static_cast<unsigned>(comm.rank()));
  for (float& x : data) x = std::normal_distribution<float>()(random);
  std::vector<int> everyone(comm.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  Collective c{.kind = Kind::all_reduce, .group = everyone, .counts = {n}};
  c.send = c.recv = data.data();
  std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms * ((comm.rank() * 5) % 7)));
  comm.wait(comm.start(c, exec));
  return data;
}

TEST(Determinism, SameBitsWhateverTheTimingAndOnAllRanks) {
  if (world_size() == 1) return;
  for (std::int64_t n : {50, 30011}) {
    const MpiOptions small{.sizes = {.chunk = 4096, .tree = 512}};
    const std::vector<float> first = reduced_bits(small, n, 0), second = reduced_bits(small, n, 3);
    EXPECT_EQ(std::memcmp(first.data(), second.data(), n * sizeof(float)), 0);
    MpiComm comm({});
    const std::vector<std::byte> all = comm.gather_all(std::as_bytes(std::span(first)));
    for (int r = 0; r < comm.size(); ++r)
      EXPECT_EQ(std::memcmp(all.data() + r * n * sizeof(float), first.data(), n * sizeof(float)), 0);
  }
}

TEST(Sizes, AMessageOfManyFullChunksArrives) {
  const std::unique_ptr<Comm> comm = make_comm("mpi");
  const device::Exec exec(1);
  std::vector<int> everyone(comm->size());
  std::iota(everyone.begin(), everyone.end(), 0);
  const std::int64_t n = std::int64_t{1'200'003} * comm->size(); // 4.8 MB per block: two chunks
  std::vector<float> data(n);
  for (std::int64_t i = 0; i < n; ++i) data[i] = term<float>(comm->rank(), i, 0);
  Collective c{.kind = Kind::all_reduce, .group = everyone, .counts = {n}};
  c.send = c.recv = data.data();

  comm->wait(comm->start(c, exec));

  for (std::int64_t i = 0; i < n; i += 997) {
    float expected = 0;
    for (int r : everyone) expected += term<float>(r, i, 0);
    ASSERT_EQ(data[i], expected) << i;
  }
}

std::string error_of(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    return error.what();
  }
  return "no error";
}

TEST(Watchdog, NamesTheCollectiveAndTheMissingRankAndTheRunMayGoOn) {
  if (world_size() == 1) return;
  for (bool library : {false, true}) {
    MpiComm comm({.library = library});
    const device::Exec exec(1);
    std::vector<int> everyone(comm.size());
    std::iota(everyone.begin(), everyone.end(), 0);
    std::vector<float> data(20000, 1.0f);
    Collective c{.kind = Kind::all_reduce, .group = everyone, .counts = {20000}, .label = "grad conv1.weight"};
    c.send = c.recv = data.data();
    comm.wait(comm.start(c, exec)); // a library makes its communicator here
    std::fill(data.begin(), data.end(), 1.0f);
    comm.barrier();
    comm.stall_seconds = 0.2;
    Token token = 0;
    if (comm.rank() != 0) { // rank 0 does not come
      token = comm.start(c, exec);
      const std::string text = error_of([&] { comm.wait(token); });
      EXPECT_NE(text.find("comm: all_reduce 'grad conv1.weight' stalled on rank " + std::to_string(comm.rank())),
                std::string::npos)
          << text;
      EXPECT_NE(text.find("got no progress for 0.2 s, expected"), std::string::npos) << text;
      if (!library && comm.rank() == 1) {
        EXPECT_NE(text.find("a message from rank 0. "), std::string::npos) << text;
      }
      if (library) {
        EXPECT_NE(text.find("any of the ranks 0, 1"), std::string::npos) << text;
      }
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      token = comm.start(c, exec);
    }
    comm.stall_seconds = 60;
    comm.wait(token);
    EXPECT_EQ(data[123], comm.size());
  }
}

TEST(Watchdog, CoversBlockingHelpers) {
  if (world_size() == 1) return;
  MpiComm comm({});
  comm.stall_seconds = 0.2;
  if (comm.rank() == 1) {
    char byte = 0;
    EXPECT_NE(error_of([&] { comm.receive(&byte, 1, 0, 5); })
                  .find("comm: receive stalled on rank 1, got no progress for "
                        "0.2 s, expected a message from rank 0. Look"),
              std::string::npos);
  }
  comm.stall_seconds = 60;
  MpiComm after({}); // the receive that was given up may still take a message
  after.barrier();
}

TEST(Exchange, ADifferentSizeThanAnnouncedIsABug) {
  if (world_size() == 1) return;
  MpiComm comm({});
  const device::Exec exec(1);
  std::vector<float> data(12);
  Collective c{.kind = Kind::exchange, .label = "resize"};
  if (comm.rank() == 0) c.sends = {{1, data.data(), 10}};
  if (comm.rank() == 1) c.receives = {{0, data.data(), 12}};
  const Token token = comm.start(c, exec);
  if (comm.rank() == 1) {
    try {
      comm.wait(token);
      FAIL() << "no error";
    } catch (const Bug& bug) {
      EXPECT_NE(std::string(bug.what()).find("exchange 'resize': 40 bytes from rank 0, 48 expected"),
                std::string::npos);
    }
  } else {
    comm.wait(token);
  }
}

TEST(Control, HelpersReachAllRanks) {
  for (const char* name : {"auto", "mpi", "mpi_library", "hierarchical"}) {
    const std::unique_ptr<Comm> comm = make_comm(name, {.hosts = host_names()});
    const int p = comm->size(), me = comm->rank(), last = p - 1;
    comm->barrier();
    EXPECT_EQ(sum(*comm, 0.5), 0.5 * p);
    EXPECT_EQ(sum(*comm, std::int64_t{1} << 40), p * (std::int64_t{1} << 40));
    EXPECT_EQ(max(*comm, static_cast<double>(-me)), 0.0);
    EXPECT_EQ(max(*comm, std::int64_t{me}), last);
    EXPECT_EQ(broadcast_text(*comm, me == 0 ? "three words here" : "", 0), "three words here");
    EXPECT_EQ(broadcast_text(*comm, me == last ? "" : "not empty", last), "");
    const std::string mine(static_cast<std::size_t>(me), static_cast<char>('a' + me));
    std::string expected;
    for (int r = 0; r < p; ++r) expected += std::string(static_cast<std::size_t>(r), static_cast<char>('a' + r));
    const std::vector<std::byte> all = comm->gather_all(std::as_bytes(std::span(mine)));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(all.data()), all.size()), expected);
    if (p > 1 && me == 0) comm->send("pass", 4, last, 3);
    if (p > 1 && me == last) {
      char text[5] = {};
      comm->receive(text, 4, 0, 3);
      EXPECT_STREQ(text, "pass");
    }
    EXPECT_EQ(comm->counters().received_bytes, 0);
    if (p > 1) {
      EXPECT_GT(sum(*comm, comm->counters().control_bytes), 0);
    }
  }
}

TEST(Faults, AreReadable) {
  const auto refused = [](const char* name) -> std::string {
    try {
      make_comm(name);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      EXPECT_TRUE(error.on_all_ranks());
      return error.what();
    }
    return "no error";
  };
  const std::string expected = " expected one that this build has: auto, mpi, mpi_library, hierarchical. ";
  EXPECT_EQ(refused("carrier_pigeon"),
            "comm: back end, got \"carrier_pigeon\"" + expected + "See the README on parallel.comm");
  EXPECT_EQ(refused("nccl"), "comm: back end, got \"nccl\"" + expected + "NCCL needs a build with CUDA");
  int value = 0;
  const std::string text =
      error_of([&] { check(MPI_Send(&value, 1, MPI_INT, world_size() + 5, 0, MPI_COMM_WORLD), "MPI_Send"); });
  EXPECT_NE(text.find("MPI_Send: failed, MPI_ERR_RANK"), std::string::npos) << text;
  EXPECT_NE(text.find("comm_test.cpp:"), std::string::npos) << text;
  const std::unique_ptr<Comm> comm = make_comm("mpi");
  EXPECT_THROW(comm->wait(17), Bug);
}

TEST(Session, KnowsHostsAndLibrary) {
  const std::vector<std::string> hosts = host_names();
  EXPECT_EQ(std::ssize(hosts), world_size());
  EXPECT_FALSE(hosts[0].empty());
  EXPECT_FALSE(mpi_library_version().empty());
}

TEST(ProgressingComm, MovesWhatNobodyPolls) {
  const std::unique_ptr<Comm> comm = make_comm("mpi");
  if (comm->size() == 1) return;
  const device::Exec exec(1);
  std::vector<int> everyone(static_cast<std::size_t>(comm->size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<float> data(1 << 20, 1.0F);
  Collective c{.kind = Kind::all_reduce, .group = everyone, .label = "beside"};
  c.send = c.recv = data.data();
  c.counts = {std::ssize(data)};
  const Token token = comm->start(c, exec);
  for (int k = 0; k < 3000 && !comm->done(token); ++k) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(comm->done(token));
  comm->wait(token);
  EXPECT_EQ(data.back(), static_cast<float>(comm->size()));
}

} // namespace
