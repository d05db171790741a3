// Collectives of a program's back ends on real ranks against serial results, and their byte counts. Every rank draws
// the same random cases.
#include "comm/comm.hpp"
#include "dist/comm_backends.hpp"
#include "support/allocations.hpp"
#include "tiling/mesh.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace {

using namespace soybean;
using namespace soybean::comm;
using test::Backend;
using test::backends;

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

template<class T>
constexpr DType dtype_of = std::is_same_v<T, float>    ? DType::f32
                           : std::is_same_v<T, double> ? DType::f64
                                                       : DType::i32;

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
  const Backend& backend_ = backends().at(GetParam());
  std::unique_ptr<Comm> comm_ = world_size() == 1 ? make_self_comm() : backend_.make();
  device::Exec exec_{1, backend_.device};

  device::Event reached_{backend_.device};

  std::vector<double> scratch_for(const Collective& c) const {
    return std::vector<double>(static_cast<std::size_t>(comm_->scratch_bytes(c) / 8 + 1));
  }
  void run(Collective c) {
    std::vector<double> scratch = scratch_for(c);
    c.scratch = scratch.data();
    run_with_scratch(c);
  }
  void run_with_scratch(const Collective& c) {
    comm_->wait(comm_->start(c, exec_));
    fence();
  }
  void fence() {
    reached_.record(exec_.stream());
    comm_->fence(reached_);
  }

  template<class T>
  void all_reduce(std::mt19937& random, std::int64_t n) {
    const std::vector<int> group = random_group(random, comm_->rank());
    const bool in_place = random() % 2;
    std::vector<T> send(n), recv(n, T{1}), expected(n);
    comm_->prepare({group});
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
    run(c);
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
    comm_->prepare({group});
    std::vector<std::int64_t> counts(group.size());
    for (std::int64_t& count : counts) count = random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random() % (most + 1));
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
    run(c);
    if (in_place) recv.assign(send.begin() + first, send.begin() + first + counts[me]);
    EXPECT_EQ(recv, expected);
    const std::int64_t received = sum(*comm_, comm_->counters().received_bytes - counted.received_bytes);
    const std::int64_t p = static_cast<std::int64_t>(group.size());
    EXPECT_EQ(received, comm_->size() / p * (p - 1) * n * static_cast<std::int64_t>(sizeof(T)));
  }

  template<class T>
  void exchange(std::mt19937& random, std::int64_t most) {
    const int p = comm_->size(), me = comm_->rank();
    std::vector<std::int64_t> counts(static_cast<std::size_t>(p) * p); // [from][to]
    for (std::int64_t& count : counts) count = random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % (most + 1));
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
    run(c);
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
    comm_->prepare({groups.back()});
    data.emplace_back(100 + 2000 * (k % 3));
    for (std::int64_t i = 0; i < std::ssize(data[k]); ++i) data[k][i] = term<float>(comm_->rank(), i, k);
    Collective c{.kind = Kind::all_reduce, .group = groups[k], .label = "in flight"};
    c.send = c.recv = data[k].data();
    c.counts = {std::ssize(data[k])};
    tokens.push_back(comm_->start(c, exec_));
    comm_->poll();
  }
  std::vector<int> order(many);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(backend_.one_order ? 0 : static_cast<unsigned>(comm_->rank())));
  for (int k : order) {
    comm_->wait(tokens[k]);
    fence();
    for (std::int64_t i = 0; i < std::ssize(data[k]); ++i) {
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
  comm_->prepare({everyone});
  const std::int64_t before = comm_->counters().control_bytes;

  run(c);

  EXPECT_EQ(loss[0], comm_->size());
  EXPECT_EQ(comm_->counters().received_bytes, 0);
  EXPECT_EQ(sum(*comm_, comm_->counters().control_bytes - before), 2 * 8 * (comm_->size() - 1));
}

TEST_P(CommTest, SteadyStateAllocatesNothing) {
  if (backend_.allocates) return;
  std::vector<int> everyone(comm_->size());
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<float> data(60000);
  const auto step = [&] {
    Collective c{.kind = Kind::all_reduce, .group = everyone, .counts = {std::ssize(data)}, .label = "step"};
    c.send = c.recv = data.data();
    std::vector<double> scratch = scratch_for(c);
    c.scratch = scratch.data();
    return test::allocations_of([&] { run_with_scratch(c); });
  };
  int calm = 0; // how many messages are under way at once depends on timing, but it is bounded
  for (int i = 0; i < 200 && calm < 5; ++i) calm = max(*comm_, std::int64_t{step()}) == 0 ? calm + 1 : 0;
  EXPECT_EQ(calm, 5);
}

INSTANTIATE_TEST_SUITE_P(Backends, CommTest, ::testing::Range(0, static_cast<int>(backends().size())),
                         [](const auto& info) {
                           std::string name = backends().at(info.param).name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

} // namespace
