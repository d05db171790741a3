#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/exec.hpp"
#include "device/math.hpp"
#include "device/reduce.hpp"
#include "device/rows.hpp"
#include "device/teams.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace {

using namespace soybean;
using device::Arena;
using device::Exec;

TEST(Exec, SetsTheThreadsAndMayBeMadeAgain) {
  {
    const Exec one(1);
    EXPECT_EQ(one.threads(), 1);
  }
  const Exec two(2);
  EXPECT_TRUE(Kokkos::is_initialized());
  two.fence();
  EXPECT_THROW(Exec(0), Bug);
}

TEST(Arena, IsZeroAndAligned) {
  const Arena arena(Exec(1), (std::int64_t{5} << 20) + 3);
  EXPECT_EQ(arena.bytes(), (std::int64_t{5} << 20) + 3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % (2u << 20), 0u);
  for (std::int64_t i = 0; i < arena.bytes(); i += 997) ASSERT_EQ(*arena.at<char>(i), 0);
  *arena.at<double>(64) = 2.5;
  EXPECT_EQ(arena.at<double>(0)[8], 2.5);
}

TEST(Arena, MovesAndMayBeEmpty) {
  Arena first(Exec(1), 1000);
  void* data = first.data();
  Arena second(std::move(first));
  EXPECT_EQ(second.data(), data);
  Arena third(Exec(1), 10);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.bytes(), 1000);
  third = Arena(Exec(1), 0);
  EXPECT_EQ(third.data(), nullptr);
  EXPECT_EQ(third.bytes(), 0);
}

TEST(Arena, SaysWhenThereIsNoMemory) {
  try {
    const Arena arena(Exec(1), std::int64_t{1} << 60);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "memory: no room for a rank's buffers, got 1152921504606846976 bytes to allocate. use "
                               "more ranks or a smaller data.batch");
    EXPECT_EQ(error.code(), ExitCode::failed);
  }
}

// Sizes below and above the threshold for threads, few long rows and many short ones.
TEST(Loops, VisitEveryIndexOnce) {
  for (int threads : {1, 2, 3}) {
    const Exec exec(threads);
    for (std::int64_t n : {0, 1, 1000, 100003}) {
      std::vector<int> seen(n);
      int* data = seen.data();
      device::flat_for(exec, n, "test::flat", [=](std::int64_t i) { data[i] += 1; });
      device::item_for(exec, n, 4, "test::item", [=](std::int64_t i) { data[i] += 1; });
      EXPECT_EQ(seen, std::vector<int>(n, 2));
    }
    for (auto [rows, channels] : {std::pair<int, int>{0, 5}, {5, 0}, {3, 7}, {2, 70001}, {70001, 3}, {333, 321}}) {
      std::vector<std::int64_t> seen(std::size_t(rows) * channels, -1);
      std::int64_t* data = seen.data();
      device::rows_for(exec, rows, channels, "test::rows", [=, c = channels](std::int64_t row, std::int64_t channel) {
        data[row * c + channel] += row * c + channel + 1;
      });
      for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], std::int64_t(i));
    }
  }
}

TEST(Sums, AreRightAndTheSameForEveryThreadCount) {
  for (auto [rows, channels] :
       {std::pair<std::int64_t, std::int64_t>{0, 3}, {1, 1}, {127, 5}, {4099, 37}, {70001, 3}}) {
    std::vector<float> x(rows * channels);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37f * float(i)) + 0.25f;
    std::vector<std::vector<double>> results;
    for (int threads : {1, 2, 3}) {
      const Exec exec(threads);
      std::vector<std::byte> scratch(device::channel_sums_scratch(exec, rows, channels) +
                                     device::total_sum_scratch(exec, rows * channels));
      std::vector<double> sums(channels + 1, -1);
      double* out = sums.data();
      const float* in = x.data();
      const std::int64_t c = channels;
      device::channel_sums(
          exec, rows, channels, scratch.data(), "test::sums",
          [=](std::int64_t row, std::int64_t channel) { return in[row * c + channel]; },
          [=](std::int64_t channel, double sum) { out[channel] = sum; });
      device::total_sum(
          exec, rows * channels, scratch.data(), "test::total", [=](std::int64_t i) { return in[i]; },
          [=](double sum) { out[c] = sum; });
      results.push_back(sums);
    }
    std::vector<long double> exact(channels + 1, 0);
    for (std::size_t i = 0; i < x.size(); ++i) exact[i % channels] += x[i], exact[channels] += x[i];
    for (std::int64_t i = 0; i <= channels; ++i)
      ASSERT_NEAR(results[0][i], double(exact[i]), 1e-12 * double(rows * channels + 1));
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

/// Everything a team can do with one row of n numbers.
struct TeamWork {
  const float* x;
  std::int64_t n;
  double* sums;
  float* most;
  int* rising;
  float* doubled;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float* in = x + row * n;
    const double sum = team.sum(n, [&](std::int64_t i) { return in[i]; });
    const float largest = team.max(n, [&](std::int64_t i) { return in[i]; });
    const bool rises = team.all(n - 1, [&](std::int64_t i) { return in[i] <= in[i + 1]; });
    team.each(n, [&](std::int64_t i) { doubled[row * n + i] = 2 * in[i]; });
    if (!team.leads()) return;
    sums[row] = sum;
    most[row] = largest;
    rising[row] = rises ? 1 : 0;
  }
};

TEST(Teams, OfTheHostAndOfKokkosDoTheSame) {
  constexpr std::int64_t rows = 3, n = 101;
  const Exec exec(2);
  std::vector<float> x(rows * n);
  for (std::int64_t i = 0; i < rows * n; ++i) x[i] = i < n ? static_cast<float>(i) : std::sin(0.7f * float(i)) - 2;
  for (const bool kokkos : {false, true}) {
    std::vector<double> sums(rows);
    std::vector<float> most(rows), doubled(rows * n);
    std::vector<int> rising(rows);
    const TeamWork work{x.data(), n, sums.data(), most.data(), rising.data(), doubled.data()};
    if (kokkos)
      device::detail::run_on_teams(Kokkos::DefaultHostExecutionSpace(), rows, 1, "test::teams", work);
    else
      device::teams_for(exec, rows, n, "test::teams", work);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto begin = x.begin() + row * n, end = begin + n;
      EXPECT_NEAR(sums[row], std::accumulate(begin, end, 0.0), 1e-9) << row;
      EXPECT_EQ(most[row], *std::max_element(begin, end)) << row;
      EXPECT_EQ(rising[row], std::is_sorted(begin, end) ? 1 : 0) << row;
    }
    EXPECT_EQ(rising, (std::vector<int>{1, 0, 0}));
    for (std::int64_t i = 0; i < rows * n; ++i) ASSERT_EQ(doubled[i], 2 * x[i]);
  }
}

TEST(Teams, AreNotCountedBeyondWhatKokkosCounts) {
  const auto none = [](const auto&, std::int64_t) {};
  try {
    device::detail::run_on_teams(Kokkos::DefaultHostExecutionSpace(), std::int64_t{1} << 31, 1, "test::teams", none);
    FAIL() << "no error";
  } catch (const Bug& bug) {
    EXPECT_NE(std::string(bug.what()).find("test::teams: 2147483648 rows, more than there are teams"),
              std::string::npos);
  }
}

TEST(Math, HasTheSameNamesForFloatAndDouble) {
  namespace math = device::math;
  EXPECT_FLOAT_EQ(math::exp(1.0f), std::exp(1.0f));
  EXPECT_DOUBLE_EQ(math::log(2.0), std::log(2.0));
  EXPECT_FLOAT_EQ(math::tanh(0.5f), std::tanh(0.5f));
  EXPECT_DOUBLE_EQ(math::sqrt(2.0), std::sqrt(2.0));
  EXPECT_EQ(math::max(1, 2), 2);
  EXPECT_EQ(math::min(1.5, 2.5), 1.5);
  EXPECT_TRUE(math::isfinite(1.0));
  EXPECT_TRUE(math::isnan(std::nan("")));
}

} // namespace
