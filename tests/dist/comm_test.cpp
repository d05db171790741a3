// Collectives on real ranks against serial results, their byte counts and the watchdog. Every rank draws the same
// random cases.
#include "comm/comm.hpp"

#include "base/error.hpp"
#include "comm/mpi.hpp"
#include "comm/mpi_session.hpp"
#include "support/allocations.hpp"
#include "tiling/mesh.hpp"

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
T term(int rank, std::int64_t i, int salt) {
  return static_cast<T>((rank * 31 + i * 7 + salt * 13) % 97 - 40);
}

template<class T>
constexpr DType dtype_of = std::is_same_v<T, float>    ? DType::f32
                           : std::is_same_v<T, double> ? DType::f64
                                                       : DType::i32;

/// Back end under test: name, and small messages so that little data already makes many.
struct Backend {
  const char* name;
  MpiOptions options;
};
const std::vector<Backend> backends = {
    {"mpi", {}},
    {"mpi in small messages", {.sizes = {.chunk = 1024, .part = 512, .tree = 64}}},
    {"mpi_library", {.library = true}},
    {"mpi_library in small messages", {.library = true, .sizes = {.chunk = 1024, .part = 512, .tree = 64}}},
};

std::unique_ptr<Comm> make(const Backend& backend) {
  if (world_size() == 1) return make_self_comm();
  return std::make_unique<MpiComm>(backend.options);
}

/// A random mesh of all ranks and one of its cuts; a mesh of no cuts gives a group of one.
std::vector<int> random_group(std::mt19937& random, int rank) {
  tiling::Mesh mesh;
  for (int left = world_size(); left > 1;) {
    int cut = 2 + static_cast<int>(random() % static_cast<unsigned>(left - 1));
    while (left % cut != 0) ++cut;
    mesh.cuts.push_back(cut);
    left /= cut;
  }
  if (mesh.cuts.empty()) return {rank};
  return tiling::group(mesh, rank, static_cast<int>(random() % mesh.cuts.size()));
}

class CommTest : public ::testing::TestWithParam<int> {
protected:
  std::unique_ptr<Comm> comm_ = make(backends[GetParam()]);
  device::Exec exec_{1};

  template<class T>
  void all_reduce(std::mt19937& random, std::int64_t n) {
    const std::vector<int> group = random_group(random, comm_->rank());
    const bool in_place = random() % 2;
    std::vector<T> send(n), recv(n, T{1}), expected(n);
    for (std::int64_t i = 0; i < n; ++i) {
      send[i] = term<T>(comm_->rank(), i, 1);
      for (int r : group) expected[i] += term<T>(r, i, 1);
    }
    const auto before = send;
    const Counters counted = comm_->counters();
    Collective c{.kind = Kind::all_reduce, .dtype = dtype_of<T>, .group = group, .label = "all_reduce"};
    c.send = send.data();
    c.recv = in_place ? send.data() : recv.data();
    c.counts = {n};
    comm_->wait(comm_->start(c, exec_));
    EXPECT_EQ(in_place ? send : recv, expected);
    if (!in_place) {
      EXPECT_EQ(send, before);
    }
    const std::int64_t received = sum(*comm_, comm_->counters().received_bytes - counted.received_bytes);
    const std::int64_t p = static_cast<std::int64_t>(group.size());
    EXPECT_EQ(received, comm_->size() / p * 2 * (p - 1) * n * static_cast<std::int64_t>(sizeof(T)));
  }

  template<class T>
  void reduce_scatter(std::mt19937& random, std::int64_t most) {
    const std::vector<int> group = random_group(random, comm_->rank());
    const bool in_place = random() % 2;
    std::vector<std::int64_t> counts;
    for (std::size_t m = 0; m < group.size(); ++m)
      counts.push_back(random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random() % (most + 1)));
    const std::int64_t n = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    const auto me = std::find(group.begin(), group.end(), comm_->rank()) - group.begin();
    const std::int64_t first = std::accumulate(counts.begin(), counts.begin() + me, std::int64_t{0});
    std::vector<T> send(n), recv(counts[me], T{1}), expected(counts[me]);
    for (std::int64_t i = 0; i < n; ++i) send[i] = term<T>(comm_->rank(), i, 2);
    for (std::int64_t i = 0; i < counts[me]; ++i)
      for (int r : group) expected[i] += term<T>(r, first + i, 2);
    const Counters counted = comm_->counters();
    Collective c{.kind = Kind::reduce_scatter, .dtype = dtype_of<T>, .group = group, .label = "reduce_scatter"};
    c.send = send.data();
    c.recv = in_place ? send.data() + first : recv.data();
    c.counts = counts;
    comm_->wait(comm_->start(c, exec_));
    if (in_place) recv.assign(send.begin() + first, send.begin() + first + counts[me]);
    EXPECT_EQ(recv, expected);
    const std::int64_t received = sum(*comm_, comm_->counters().received_bytes - counted.received_bytes);
    const std::int64_t p = static_cast<std::int64_t>(group.size());
    EXPECT_EQ(received, comm_->size() / p * (p - 1) * n * static_cast<std::int64_t>(sizeof(T)));
  }

  template<class T>
  void exchange(std::mt19937& random, std::int64_t most) {
    const int p = comm_->size(), me = comm_->rank();
    std::vector<std::int64_t> counts; // [from][to]
    for (int i = 0; i < p * p; ++i)
      counts.push_back(random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % (most + 1)));
    std::vector<std::vector<T>> out, in;
    Collective c{.kind = Kind::exchange, .dtype = dtype_of<T>, .label = "exchange"};
    std::int64_t lacking = 0;
    for (int peer = 0; peer < p; ++peer) {
      out.emplace_back(counts[me * p + peer]);
      in.emplace_back(counts[peer * p + me]);
      for (std::size_t i = 0; i < out.back().size(); ++i) out.back()[i] = term<T>(me, i, peer);
      if (counts[me * p + peer] || peer % 2) c.sends.push_back({peer, out.back().data(), counts[me * p + peer]});
      if (counts[peer * p + me] || me % 2) c.receives.push_back({peer, in.back().data(), counts[peer * p + me]});
      if (peer != me) lacking += counts[peer * p + me];
    }
    const Counters counted = comm_->counters();
    comm_->wait(comm_->start(c, exec_));
    for (int peer = 0; peer < p; ++peer)
      for (std::size_t i = 0; i < in[peer].size(); ++i) ASSERT_EQ(in[peer][i], term<T>(peer, i, me)) << peer;
    EXPECT_EQ(comm_->counters().received_bytes - counted.received_bytes,
              lacking * static_cast<std::int64_t>(sizeof(T)));
  }
};

TEST_P(CommTest, AllReduceEqualsSerialSumAndCountsItsBytes) {
  std::mt19937 random(1);
  for (std::int64_t n : {0, 1, 2, 7, 100, 1009, 20011}) {
    all_reduce<float>(random, n);
    all_reduce<double>(random, n);
    all_reduce<std::int32_t>(random, n);
  }
}

TEST_P(CommTest, ReduceScatterTakesUnevenAndZeroCounts) {
  std::mt19937 random(2);
  for (std::int64_t most : {0, 1, 3, 300, 5000}) {
    reduce_scatter<float>(random, most);
    reduce_scatter<double>(random, most);
    reduce_scatter<std::int32_t>(random, most);
  }
}

TEST_P(CommTest, ExchangeDeliversWhatEachRankLacks) {
  std::mt19937 random(3);
  for (std::int64_t most : {1, 50, 3000}) {
    exchange<float>(random, most);
    exchange<double>(random, most);
    exchange<std::int32_t>(random, most);
  }
}

TEST_P(CommTest, ManyMayBeInFlightAndEndInAnyOrder) {
  constexpr int many = 12;
  std::vector<std::vector<float>> data;
  std::vector<Token> tokens;
  std::vector<std::vector<int>> groups;
  std::mt19937 random(4);
  for (int k = 0; k < many; ++k) {
    groups.push_back(random_group(random, comm_->rank()));
    data.emplace_back(100 + 2000 * (k % 3));
    for (std::size_t i = 0; i < data[k].size(); ++i) data[k][i] = term<float>(comm_->rank(), i, k);
    Collective c{.kind = Kind::all_reduce, .group = groups[k], .label = "in flight"};
    c.send = c.recv = data[k].data();
    c.counts = {std::ssize(data[k])};
    tokens.push_back(comm_->start(c, exec_));
    comm_->poll();
  }
  std::vector<int> order(many);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(comm_->rank())));
  for (int k : order) {
    comm_->wait(tokens[k]);
    for (std::size_t i = 0; i < data[k].size(); ++i) {
      float expected = 0;
      for (int r : groups[k]) expected += term<float>(r, i, k);
      ASSERT_EQ(data[k][i], expected) << "collective " << k;
    }
  }
}

TEST_P(CommTest, ControlTrafficIsCountedApart) {
  std::vector<double> loss{1.0};
  std::vector<int> everyone(comm_->size());
  std::iota(everyone.begin(), everyone.end(), 0);
  Collective c{.kind = Kind::all_reduce, .dtype = DType::f64, .group = everyone, .counts = {1}, .control = true};
  c.send = c.recv = loss.data();

  comm_->wait(comm_->start(c, exec_));

  EXPECT_EQ(loss[0], comm_->size());
  EXPECT_EQ(comm_->counters().received_bytes, 0);
  EXPECT_EQ(sum(*comm_, comm_->counters().control_bytes), 2 * 8 * (comm_->size() - 1));
}

INSTANTIATE_TEST_SUITE_P(Backends, CommTest, ::testing::Range(0, 4));

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
  const std::int64_t n = 1'200'003 * comm->size(); // 4.8 MB per block: two chunks
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

TEST(Memory, SteadyStateAllocatesNothing) {
  const std::unique_ptr<Comm> comm = make_comm("mpi");
  const device::Exec exec(1);
  std::vector<int> everyone(comm->size());
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<float> data(60000);
  const auto step = [&] {
    Collective c{.kind = Kind::all_reduce, .group = everyone, .counts = {std::ssize(data)}, .label = "step"};
    c.send = c.recv = data.data();
    return test::allocations_of([&] { comm->wait(comm->start(std::move(c), exec)); });
  };
  step();
  step();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step(), 0);
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
  for (const char* name : {"mpi", "mpi_library"}) {
    const std::unique_ptr<Comm> comm = make_comm(name);
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
  try {
    make_comm("carrier_pigeon");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_EQ(std::string(error.what())
                  .find("comm: back end, got \"carrier_pigeon\" expected \"mpi\" or "
                        "\"mpi_library\"."),
              0u);
  }
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

} // namespace
