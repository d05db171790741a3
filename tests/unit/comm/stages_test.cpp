// How collectives are split over hosts, without MPI: every rank's stages for clusters larger than one machine's tests.
#include "comm/stages.hpp"

#include "base/error.hpp"
#include "comm/schedule.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

namespace soybean::comm {
namespace {

struct Bytes {
  std::int64_t all = 0, outside = 0;
};

/// What all ranks together receive in the stages of one collective of all ranks. Also holds each stage to its links.
Bytes received(Kind kind, std::int64_t per_member, const std::vector<int>& hosts, bool equal) {
  const int p = static_cast<int>(hosts.size());
  Bytes bytes;
  Stages stages;
  Schedule schedule;
  for (int rank = 0; rank < p; ++rank) {
    std::vector<double> send(static_cast<std::size_t>(per_member * p)), recv(send.size());
    Collective c{.kind = kind, .dtype = DType::f64, .label = "all"};
    for (int r = 0; r < p; ++r) c.group.push_back(r);
    c.send = send.data();
    c.recv = recv.data();
    c.counts.assign(kind == Kind::all_reduce ? 1 : hosts.size(),
                    kind == Kind::all_reduce ? per_member * p : per_member);
    stages.place(c, rank, hosts);
    std::vector<std::byte> scratch(static_cast<std::size_t>(stages.scratch_bytes()));
    stages.build(scratch.data());
    for (int s = 0; s < Stages::count; ++s) {
      build_schedule(stages.stage(s), rank, p, {.tree = 0}, schedule);
      EXPECT_EQ(stages.stage(s).label, "all");
      for (const Receive& r : schedule.receives) {
        const bool outside = hosts[static_cast<std::size_t>(r.peer)] != hosts[static_cast<std::size_t>(rank)];
        bytes.all += r.bytes;
        if (outside) bytes.outside += r.bytes;
        if (equal) {
          EXPECT_EQ(outside, s == 1);
        }
      }
    }
  }
  return bytes;
}

TEST(Stages, EqualHostsCrossSlowLinksAsRarelyAsPossible) {
  for (int hosts : {1, 2, 3, 5, 8})
    for (int each : {1, 2, 3, 8})
      for (bool dealt : {false, true}) {
        std::vector<int> host_of;
        host_of.reserve(static_cast<std::size_t>(hosts) * each);
        for (int r = 0; r < hosts * each; ++r) host_of.push_back(dealt ? r % hosts : r / each);
        const std::int64_t p = std::int64_t{hosts} * each, b = 6 * p * 8;
        SCOPED_TRACE(fmt::format("{} hosts of {} dealt {}", hosts, each, dealt));
        const Bytes sums = received(Kind::all_reduce, 6, host_of, true);
        EXPECT_EQ(sums.all, 2 * (p - 1) * b);
        EXPECT_EQ(sums.outside, 2 * b * (hosts - 1));
        const Bytes parts = received(Kind::reduce_scatter, 6, host_of, true);
        EXPECT_EQ(parts.all, (p - 1) * b);
        EXPECT_EQ(parts.outside, (hosts - 1) * b);
      }
}

TEST(Stages, UnequalHostsReduceInARingInOrderOfHosts) {
  const std::vector<int> hosts{0, 1, 0, 1, 0, 2}; // 3, 2 and 1 ranks
  const std::int64_t p = 6, b = 6 * p * 8;
  const Bytes sums = received(Kind::all_reduce, 6, hosts, false);
  EXPECT_EQ(sums.all, 2 * (p - 1) * b);
  EXPECT_EQ(sums.outside, 3 * 2 * (p - 1) * b / p);
  EXPECT_EQ(received(Kind::reduce_scatter, 6, hosts, false).all, (p - 1) * b);
}

TEST(Stages, AReduceScatterInClassesNeedsNoScratch) {
  std::vector<double> data(8);
  Collective c{.kind = Kind::reduce_scatter, .dtype = DType::f64, .group = {0, 1, 2, 3}};
  c.send = c.recv = data.data();
  c.counts = {2, 0, 5, 1};
  Stages stages;
  const std::vector<int> dealt{0, 1, 0, 1}, blocks{0, 0, 1, 1};
  stages.place(c, 0, dealt);
  EXPECT_EQ(stages.scratch_bytes(), 0);
  stages.place(c, 0, blocks);
  EXPECT_EQ(stages.scratch_bytes(), 8 * 8);
  std::vector<double> scratch(8);
  stages.build(scratch.data());
  EXPECT_EQ(stages.stage(0).counts, (std::vector<std::int64_t>{2 + 5, 0 + 1}));
  EXPECT_EQ(stages.stage(1).counts, (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(stages.stage(1).group, (std::vector<int>{0, 2}));
  EXPECT_EQ(stages.copies().size(), 3u); // empty parts are not copied
}

TEST(Stages, MessagesOfAnExchangeTakeTheirLinksAtOnce) {
  double x = 0;
  Collective c{.kind = Kind::exchange, .dtype = DType::f64};
  c.sends = {{0, &x, 1}, {1, &x, 1}, {2, &x, 1}};
  c.receives = {{0, &x, 1}, {2, &x, 0}};
  Stages stages;
  const std::vector<int> hosts{0, 0, 1};
  stages.place(c, 0, hosts);
  stages.build(nullptr);
  EXPECT_TRUE(stages.at_once());
  EXPECT_EQ(stages.stage(0).sends.size(), 2u);
  EXPECT_EQ(stages.stage(1).sends.size(), 1u);
  EXPECT_EQ(stages.stage(0).receives.size(), 1u);
  EXPECT_EQ(stages.stage(1).receives[0].peer, 2);
  EXPECT_EQ(stages.stage(2).kind, Kind::all_reduce);
  EXPECT_EQ(stages.stage(2).counts, (std::vector<std::int64_t>{0}));
}

TEST(Stages, AGroupWithoutThisRankIsABug) {
  const Collective c{.kind = Kind::all_reduce, .group = {1, 2}, .counts = {1}};
  Stages stages;
  EXPECT_THROW(stages.place(c, 0, std::vector<int>{0, 0, 1}), Bug);
}

} // namespace
} // namespace soybean::comm
