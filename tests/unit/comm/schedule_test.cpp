// Runs schedules of all ranks against each other in memory, in random order of delivery, without MPI.
#include "comm/schedule.hpp"

#include "base/error.hpp"
#include "comm/add.hpp"
#include "comm/mpi_session.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <random>

namespace {

using namespace soybean;
using namespace soybean::comm;

/// Delivers all messages; picks at random which rank moves next. Sends complete when delivered. EXPECTs progress.
void run(std::vector<Schedule>& ranks, DType type, unsigned seed) {
  struct State {
    std::int64_t received = 0, sent = 0;
  };
  std::vector<State> state(ranks.size());
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> wire;
  std::mt19937 random(seed);
  for (std::size_t idle = 0; idle < 1000 * ranks.size();) {
    const int me = static_cast<int>(random() % ranks.size());
    State& s = state[me];
    const Schedule& mine = ranks[me];
    bool moved = false;
    if (s.sent < std::ssize(mine.sends) && mine.sends[s.sent].after <= s.received) {
      const Send& send = mine.sends[s.sent++];
      wire[{me, send.peer}].emplace_back(send.from, send.from + send.bytes);
      moved = true;
    } else if (s.received < std::ssize(mine.receives) && mine.receives[s.received].after <= s.sent) {
      const Receive& r = mine.receives[s.received];
      auto& queue = wire[{r.peer, me}];
      if (!queue.empty()) {
        ASSERT_EQ(std::ssize(queue.front()), r.bytes);
        if (r.own)
          add(type, r.into, r.own, queue.front().data(), r.bytes / size_of(type), 1);
        else
          std::memcpy(r.into, queue.front().data(), queue.front().size());
        queue.pop_front();
        ++s.received;
        moved = true;
      }
    }
    idle = moved ? 0 : idle + 1;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    EXPECT_EQ(state[r].received, std::ssize(ranks[r].receives)) << "rank " << r << " of " << ranks.size();
    EXPECT_EQ(state[r].sent, std::ssize(ranks[r].sends));
  }
  for (const auto& [pair, queue] : wire) EXPECT_TRUE(queue.empty());
}

std::vector<int> all_ranks(int p) {
  std::vector<int> group(static_cast<std::size_t>(p));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

std::vector<std::vector<std::int32_t>> random_terms(int p, std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<std::int32_t>> terms(static_cast<std::size_t>(p));
  for (auto& t : terms)
    for (std::int64_t i = 0; i < n; ++i) t.push_back(static_cast<std::int32_t>(random() % 1000));
  return terms;
}

std::vector<std::int32_t> serial_sum(const std::vector<std::vector<std::int32_t>>& terms) {
  std::vector<std::int32_t> sum(terms[0].size());
  for (const auto& t : terms)
    for (std::size_t i = 0; i < t.size(); ++i) sum[i] += t[i];
  return sum;
}

class AllReduceSchedule : public ::testing::TestWithParam<int> {};

TEST_P(AllReduceSchedule, SumsAndMovesExactlyTwiceTheBytesOfAReduceScatter) {
  const int p = GetParam();
  for (std::int64_t n : {0, 1, 2, 5, 7, 64, 1000, 1009}) {
    for (bool in_place : {true, false}) {
      for (const MessageSizes& sizes : {MessageSizes{}, MessageSizes{64, 64, 0}, MessageSizes{8, 8, 16}}) {
        auto terms = random_terms(p, n, 7);
        const auto expected = serial_sum(terms);
        const auto before = terms;
        std::vector<std::vector<std::int32_t>> sums(terms.size(), std::vector<std::int32_t>(n));
        std::vector<Schedule> schedules(terms.size());
        std::int64_t bytes = 0;
        for (int r = 0; r < p; ++r) {
          Collective c{.kind = Kind::all_reduce, .dtype = DType::i32, .group = all_ranks(p)};
          c.send = terms[r].data();
          c.recv = in_place ? terms[r].data() : sums[r].data();
          c.counts = {n};
          build_schedule(c, r, p, sizes, schedules[r]);
          bytes += received_bytes(schedules[r]);
        }
        run(schedules, DType::i32, 3);
        EXPECT_EQ(bytes, 2 * n * (p - 1) * 4);
        for (int r = 0; r < p; ++r) EXPECT_EQ(in_place ? terms[r] : sums[r], expected) << "n " << n << " rank " << r;
        if (!in_place) {
          EXPECT_EQ(terms, before);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, AllReduceSchedule, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 13));

TEST(ReduceScatterSchedule, HandlesUnevenAndZeroCountsWithExactBytes) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const int p = 1 + static_cast<int>(random() % 8);
    std::vector<std::int64_t> counts, offsets{0};
    for (int m = 0; m < p; ++m) {
      counts.push_back(random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % 100));
      offsets.push_back(offsets.back() + counts.back());
    }
    const bool in_place = random() % 2;
    auto terms = random_terms(p, offsets.back(), random());
    const auto expected = serial_sum(terms);
    std::vector<Schedule> schedules(terms.size());
    std::vector<std::vector<std::int32_t>> results(terms.size());
    std::int64_t bytes = 0;
    for (int r = 0; r < p; ++r) {
      results[r].resize(counts[r]);
      Collective c{.kind = Kind::reduce_scatter, .dtype = DType::i32, .group = all_ranks(p)};
      c.send = terms[r].data();
      c.recv = in_place ? terms[r].data() + offsets[r] : results[r].data();
      c.counts = counts;
      build_schedule(c, r, p, {.chunk = 64}, schedules[r]);
      bytes += received_bytes(schedules[r]);
    }
    run(schedules, DType::i32, random());
    EXPECT_EQ(bytes, (p - 1) * offsets.back() * 4);
    for (int r = 0; r < p; ++r) {
      const std::int32_t* got = in_place ? terms[r].data() + offsets[r] : results[r].data();
      EXPECT_TRUE(std::equal(got, got + counts[r], expected.begin() + offsets[r])) << "trial " << trial;
    }
  }
}

TEST(ExchangeSchedule, DeliversEveryMessageInPartsAndCopiesToItself) {
  constexpr int p = 5;
  const auto count = [](int from, int to) { return from == 3 ? 0 : (from * 7 + to * 11) % 30; };
  std::vector<Schedule> schedules(p);
  std::vector<std::vector<std::vector<double>>> out(p), in(p);
  for (int r = 0; r < p; ++r) {
    Collective c{.kind = Kind::exchange, .dtype = DType::f64};
    for (int peer = 0; peer < p; ++peer) {
      out[r].emplace_back(count(r, peer));
      for (std::size_t i = 0; i < out[r][peer].size(); ++i) out[r][peer][i] = r * 10000 + peer * 100 + double(i);
      in[r].emplace_back(count(peer, r));
      c.sends.push_back({peer, out[r][peer].data(), std::ssize(out[r][peer])});
      c.receives.push_back({peer, in[r][peer].data(), std::ssize(in[r][peer])});
    }
    build_schedule(c, r, p, {.part = 64}, schedules[r]);
  }
  run(schedules, DType::f64, 5);
  for (int r = 0; r < p; ++r) {
    std::int64_t others = 0;
    for (int peer = 0; peer < p; ++peer) {
      EXPECT_EQ(in[r][peer], out[peer][r]) << peer << " -> " << r;
      if (peer != r) others += std::int64_t{8} * count(peer, r);
    }
    EXPECT_EQ(received_bytes(schedules[r]), others);
  }
}

TEST(Schedule, RefusesMalformedCollectives) {
  std::vector<float> data(16);
  Schedule s;
  Collective c{.kind = Kind::all_reduce, .group = {0, 1}, .send = data.data(), .recv = data.data(), .counts = {4}};
  EXPECT_THROW(build_schedule(c, 2, 3, {}, s), Bug) << "not a member";
  c.counts = {4, 4};
  EXPECT_THROW(build_schedule(c, 0, 3, {}, s), Bug) << "two counts";
  c.counts = {8};
  c.recv = data.data() + 4;
  EXPECT_THROW(build_schedule(c, 0, 3, {}, s), Bug) << "overlap";
  c.kind = Kind::reduce_scatter;
  EXPECT_THROW(build_schedule(c, 0, 3, {}, s), Bug) << "one count for two members";
  c.counts = {4, 4};
  EXPECT_THROW(build_schedule(c, 0, 3, {}, s), Bug) << "recv in the other's chunk";
  EXPECT_NO_THROW(build_schedule(c, 1, 3, {}, s)) << "recv in its own chunk";
  c.group = {0, 7};
  EXPECT_THROW(build_schedule(c, 0, 3, {}, s), Bug) << "no such rank";
}

TEST(Add, DoesNotDependOnThreadsAndWorksInPlace) {
  constexpr std::int64_t n = 200001;
  std::mt19937 random(1);
  std::vector<float> a(n), b(n), once(n), many(n);
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = static_cast<float>(random()) / 3;
    b[i] = static_cast<float>(random()) / 7;
  }
  add(DType::f32, once.data(), a.data(), b.data(), n, 1);
  add(DType::f32, many.data(), a.data(), b.data(), n, 2);
  EXPECT_EQ(once, many);
  EXPECT_EQ(once[n - 1], a[n - 1] + b[n - 1]);
  add(DType::f32, a.data(), a.data(), b.data(), n, 1);
  EXPECT_EQ(once, a);
}

TEST(Session, CountsRanksPerHostInOrderOfAppearance) {
  EXPECT_EQ(ranks_per_host({"b", "b", "a", "b"}), (std::vector<int>{3, 1}));
  EXPECT_TRUE(ranks_per_host({}).empty());
}

} // namespace
