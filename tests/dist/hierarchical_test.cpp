// The hierarchical back end over emulated hosts: every collective and random redistributions against the flat back end,
// received bytes equal to it, and bytes from other hosts equal to the formulas of comm/stages.hpp. Every rank draws the
// same random cases.
#include "comm/hierarchical.hpp"

#include "base/error.hpp"
#include "comm/mpi.hpp"
#include "runtime/transfer.hpp"
#include "support/allocations.hpp"
#include "support/random_plan.hpp"
#include "tiling/redistribution.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
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

/// Emulated hosts: equally many ranks on each, in blocks and dealt round, one host, one rank per host, and unequal
/// ones.
std::vector<std::vector<int>> layouts() {
  const int p = world_size();
  std::vector<std::vector<int>> result;
  const auto add = [&](const auto& host_of) {
    std::vector<int> hosts;
    hosts.reserve(static_cast<std::size_t>(p));
    for (int r = 0; r < p; ++r) hosts.push_back(host_of(r));
    if (std::find(result.begin(), result.end(), hosts) == result.end()) result.push_back(hosts);
  };
  for (int hosts = 1; hosts <= p; ++hosts) {
    if (p % hosts != 0) continue;
    add([&](int r) { return r / (p / hosts); });
    add([&](int r) { return r % hosts; });
  }
  add([&](int r) { return r == 0 ? 1 : 0; });
  add([&](int r) { return r * r % 5 / 2; });
  return result;
}

constexpr MessageSizes only_rings{.chunk = 1024, .part = 512, .tree = 0};

std::unique_ptr<HierarchicalComm> hierarchical(const std::vector<int>& hosts, bool one_queue = false,
                                               const MessageSizes& sizes = only_rings) {
  const MpiOptions options{.sizes = sizes, .hosts = hosts};
  return std::make_unique<HierarchicalComm>(Halves{.inside = std::make_unique<MpiComm>(options),
                                                   .between = std::make_unique<MpiComm>(options),
                                                   .after = one_queue ? nullptr : std::make_unique<MpiComm>(options)},
                                            hosts);
}

std::vector<int> random_group(std::mt19937& random, int rank) {
  const tiling::Mesh mesh = support::random_mesh(random(), world_size());
  if (mesh.cuts.empty()) return {rank};
  return tiling::group(mesh, rank, static_cast<int>(random() % mesh.cuts.size()));
}

std::int64_t block(std::int64_t n, std::int64_t p, std::int64_t j) {
  return n * (j + 1) / p - n * j / p;
}

/// Elements that cross hosts in one group, by the formulas.
std::int64_t crossing(const Collective& c, const std::vector<int>& hosts) {
  std::map<int, int> members;
  for (int r : c.group) ++members[hosts[r]];
  const std::int64_t host_count = std::ssize(members), p = std::ssize(c.group);
  const std::int64_t n = std::accumulate(c.counts.begin(), c.counts.end(), std::int64_t{0});
  const bool sums = c.kind == Kind::all_reduce;
  if (std::all_of(members.begin(), members.end(), [&](const auto& m) { return m.second == members.begin()->second; }))
    return (sums ? 2 : 1) * (host_count - 1) * n;
  std::vector<int> ring = c.group;
  if (sums)
    std::sort(ring.begin(), ring.end(), [&](int a, int b) { return std::pair(hosts[a], a) < std::pair(hosts[b], b); });
  std::int64_t elements = 0;
  for (std::int64_t m = 0; m < p; ++m) {
    const std::int64_t before = (m + p - 1) % p;
    if (hosts[ring[m]] == hosts[ring[before]]) continue;
    elements += sums ? 2 * n - block(n, p, m) - block(n, p, before) : n - c.counts[before];
  }
  return elements;
}

/// The value of one element of a rank's term: whole numbers, so that all orders of sums agree.
double term(std::int64_t rank, std::int64_t i) {
  return static_cast<double>((rank * 31 + i * 7) % 97 - 40);
}

struct Result {
  std::vector<double> values;
  Counters counted;
};

/// Runs the collective as drawn from `seed`; exchange: random counts for each pair.
struct Case {
  Kind kind;
  unsigned seed;
  std::int64_t most;
  std::int64_t crossing = 0; ///< elements received by this rank's group, or this rank, from other hosts

  Result run(Comm& comm, const device::Exec& exec, const std::vector<int>& hosts) {
    std::mt19937 random(seed);
    const int p = comm.size(), me = comm.rank();
    Collective c{.kind = kind, .dtype = DType::f64, .label = "case"};
    std::vector<double> out, in;
    bool in_place = false;
    std::int64_t first = 0;
    if (kind == Kind::exchange) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(p) * p);
      for (std::int64_t& count : counts)
        count = random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % (most + 1));
      std::int64_t from = 0, to = 0;
      for (int r = 0; r < p; ++r) from += counts[me * p + r], to += counts[r * p + me];
      out.resize(from);
      in.resize(to);
      from = to = crossing = 0;
      for (int r = 0; r < p; ++r) {
        c.sends.push_back({r, out.data() + from, counts[me * p + r]});
        c.receives.push_back({r, in.data() + to, counts[r * p + me]});
        from += counts[me * p + r];
        to += counts[r * p + me];
        if (hosts[r] != hosts[me]) crossing += counts[r * p + me];
      }
    } else {
      c.group = random_group(random, me);
      in_place = random() % 2;
      const auto place = std::find(c.group.begin(), c.group.end(), me) - c.group.begin();
      const bool whole = kind == Kind::all_reduce;
      if (whole)
        c.counts = {most};
      else
        for (std::size_t m = 0; m < c.group.size(); ++m)
          c.counts.push_back(random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random() % (most + 1)));
      first = whole ? 0 : std::accumulate(c.counts.begin(), c.counts.begin() + place, std::int64_t{0});
      out.resize(std::accumulate(c.counts.begin(), c.counts.end(), std::int64_t{0}));
      in.assign(whole ? most : c.counts[place], 7.0);
      crossing = place == 0 ? ::crossing(c, hosts) : 0;
    }
    for (std::int64_t i = 0; i < std::ssize(out); ++i) out[i] = term(me, i);
    const std::vector<double> before = out;
    c.send = out.data();
    c.recv = in_place ? out.data() + first : in.data();
    const Counters counted = comm.counters();
    comm.prepare({c.group.empty() ? std::vector<int>{me} : c.group});
    std::vector<double> scratch(static_cast<std::size_t>(comm.scratch_bytes(c) / 8));
    c.scratch = scratch.data();
    comm.wait(comm.start(c, exec));
    if (in_place) std::copy_n(out.begin() + first, in.size(), in.begin());
    if (kind == Kind::all_reduce && !in_place) {
      EXPECT_EQ(out, before) << "send is preserved";
    }
    const Counters now = comm.counters();
    return {in,
            {.received_bytes = now.received_bytes - counted.received_bytes,
             .outside_bytes = now.outside_bytes - counted.outside_bytes}};
  }
};

class Hierarchical : public ::testing::TestWithParam<bool> {
protected:
  device::Exec exec_{1};
};

TEST_P(Hierarchical, CollectivesEqualFlatOnesAndCrossHostsByTheFormulas) {
  MpiComm flat({.sizes = only_rings});
  unsigned seed = 0;
  for (const std::vector<int>& hosts : layouts()) {
    const auto comm = hierarchical(hosts, GetParam());
    for (Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::exchange})
      for (std::int64_t most : {0, 1, 5, 1000}) {
        Case one{kind, ++seed, most};
        SCOPED_TRACE(fmt::format("hosts {} kind {} most {}", fmt::join(hosts, " "), static_cast<int>(kind), most));
        const Result expected = one.run(flat, exec_, hosts), got = one.run(*comm, exec_, hosts);
        EXPECT_EQ(got.values, expected.values);
        EXPECT_EQ(sum(flat, got.counted.received_bytes), sum(flat, expected.counted.received_bytes));
        EXPECT_EQ(sum(flat, got.counted.outside_bytes), 8 * sum(flat, one.crossing));
      }
  }
}

/// Random tilings of a random tensor, the first one perhaps partial.
tiling::Tiling random_tiling(std::mt19937& random, const Shape& shape, const tiling::Mesh& mesh, bool partial) {
  tiling::Tiling t;
  for (std::size_t cut = 0; cut < mesh.cuts.size(); ++cut) {
    const unsigned draw = random() % 4;
    if (draw == 0 && partial)
      t.push_back(tiling::partial());
    else if (draw <= 1)
      t.push_back(tiling::replicate());
    else
      t.push_back(tiling::split(static_cast<int>(random() % shape.size())));
  }
  return tiling::normalise(t, shape, mesh);
}

/// Carries out all steps from one tiling to the other on this rank's block of random terms.
struct Redistribution {
  tiling::Mesh mesh;
  Shape shape;
  tiling::Tiling from, to;

  Result run(Comm& comm, const device::Exec& exec) const {
    const int me = comm.rank();
    const auto view = [&](const tiling::Tiling& t, std::vector<double>& data) {
      const Box box = tiling::block(t, shape, mesh, me);
      data.resize(static_cast<std::size_t>(volume(box)));
      return device::TensorView{
          .data = data.data(), .dtype = DType::f64, .box = box, .global = shape, .spatial = shape.size() == 4};
    };
    std::vector<double> current;
    view(from, current);
    for (std::size_t i = 0; i < current.size(); ++i) current[i] = std::sin(static_cast<double>(i + 100) * (me + 1));
    const Counters before = comm.counters();
    for (const tiling::Step& step : tiling::path(mesh, {shape, {}}, from, to)) {
      std::vector<double> next;
      const device::TensorView source = view(step.from, current), target = view(step.to, next);
      const runtime::TransferInput input{mesh, me, step, source, target, step.elements % 2 == 0, &comm};
      std::vector<double> staging(runtime::prepare_transfer(input, nullptr).staging_bytes / 8 + 1);
      const runtime::Transfer transfer = runtime::prepare_transfer(input, staging.data());
      runtime::run_before(exec, transfer);
      if (transfer.communicates) comm.wait(comm.start(transfer.collective, exec));
      runtime::run_after(exec, transfer);
      current = next;
    }
    return {current, {.received_bytes = comm.counters().received_bytes - before.received_bytes}};
  }
};

TEST_P(Hierarchical, RedistributionsEqualFlatOnes) {
  MpiComm flat({.sizes = only_rings});
  std::mt19937 random(11);
  for (const std::vector<int>& hosts : layouts()) {
    const auto comm = hierarchical(hosts, GetParam());
    const int cases = world_size() > 8 ? 4 : 12; // which share few cores
    for (int i = 0; i < cases; ++i) {
      Redistribution r{.mesh = support::random_mesh(random(), world_size())};
      for (int d = random() % 2 == 0 ? 2 : 4; d > 0; --d)
        r.shape.push_back(world_size() + static_cast<std::int64_t>(random() % 9));
      r.from = random_tiling(random, r.shape, r.mesh, true);
      r.to = random_tiling(random, r.shape, r.mesh, false);
      SCOPED_TRACE(fmt::format("hosts {}, {} {} to {}", fmt::join(hosts, " "), to_string(r.shape),
                               tiling::to_string(r.from), tiling::to_string(r.to)));
      const Result expected = r.run(flat, exec_), got = r.run(*comm, exec_);
      ASSERT_EQ(got.values.size(), expected.values.size());
      double worst = 0;
      for (std::size_t k = 0; k < got.values.size(); ++k)
        worst = std::max(worst, std::abs(got.values[k] - expected.values[k]));
      EXPECT_LE(worst, 1e-13);
      EXPECT_EQ(sum(flat, got.counted.received_bytes), sum(flat, expected.counted.received_bytes));
      EXPECT_EQ(sum(flat, got.counted.received_bytes), 8 * tiling::elements_moved(r.mesh, {r.shape, {}}, r.from, r.to));
    }
  }
}

/// Many collectives under way, of all kinds and groups, with delays between polls; waits in the order of starts.
TEST_P(Hierarchical, ManyAreUnderWayAtOnce) {
  for (const std::vector<int>& hosts : layouts()) {
    const auto comm = hierarchical(hosts, GetParam());
    std::mt19937 random(5), delays(static_cast<unsigned>(comm->rank()));
    std::vector<std::vector<double>> data;
    std::vector<std::vector<int>> groups;
    std::vector<Token> tokens;
    for (int k = 0; k < 10; ++k) {
      groups.push_back(random_group(random, comm->rank()));
      data.emplace_back(1 + 700 * (k % 3));
      for (std::int64_t i = 0; i < std::ssize(data[k]); ++i) data[k][i] = term(comm->rank() + k, i);
      Collective c{.kind = Kind::all_reduce, .dtype = DType::f64, .group = groups[k], .label = "in flight"};
      c.send = c.recv = data[k].data();
      c.counts = {std::ssize(data[k])};
      tokens.push_back(comm->start(c, exec_));
      std::this_thread::sleep_for(std::chrono::microseconds(delays() % 300));
      comm->poll();
    }
    comm->barrier(); // progresses them too
    for (int k = 0; k < 10; ++k) {
      comm->wait(tokens[k]);
      for (std::int64_t i = 0; i < std::ssize(data[k]); ++i) {
        double expected = 0;
        for (int r : groups[k]) expected += term(r + k, i);
        ASSERT_EQ(data[k][i], expected) << "collective " << k << " hosts " << fmt::format("{}", fmt::join(hosts, " "));
      }
    }
  }
}

TEST_P(Hierarchical, SteadyStateAllocatesNothing) {
  for (const std::vector<int>& hosts : layouts()) {
    const auto comm = hierarchical(hosts, GetParam());
    std::vector<int> everyone(comm->size());
    std::iota(everyone.begin(), everyone.end(), 0);
    std::vector<double> sums(5000), terms(100 * everyone.size()), part(100), scratch(terms.size());
    const auto step = [&] {
      Collective a{.kind = Kind::all_reduce, .dtype = DType::f64, .group = everyone, .counts = {std::ssize(sums)}};
      a.send = a.recv = sums.data();
      Collective b{.kind = Kind::reduce_scatter, .dtype = DType::f64, .group = everyone, .label = "step"};
      b.send = terms.data();
      b.scratch = scratch.data();
      b.recv = part.data();
      b.counts.assign(everyone.size(), 100);
      return test::allocations_of([&] {
        const Token first = comm->start(a, exec_), second = comm->start(b, exec_);
        comm->wait(first);
        comm->wait(second);
      });
    };
    // How many messages and stages are under way at once depends on timing, but it is bounded.
    int calm = 0;
    for (int i = 0; i < 200 && calm < 5; ++i) calm = max(*comm, std::int64_t{step()}) == 0 ? calm + 1 : 0;
    EXPECT_EQ(calm, 5) << fmt::format("{}", fmt::join(hosts, " "));
  }
}

TEST_P(Hierarchical, WithoutItsScratchACollectiveIsABug) {
  if (world_size() != 4) return;
  const auto comm = hierarchical({0, 0, 1, 1}, GetParam());
  std::vector<double> terms(8, 1.0), part(2), scratch(8);
  Collective c{.kind = Kind::reduce_scatter, .dtype = DType::f64, .group = {0, 1, 2, 3}, .counts = {2, 2, 2, 2}};
  c.send = terms.data();
  c.recv = part.data();
  EXPECT_EQ(comm->scratch_bytes(c), 64);
  EXPECT_THROW(comm->start(c, exec_), Bug);
  c.group = {0, 2, 1, 3}; // whose parts lie as the stages take them
  EXPECT_EQ(comm->scratch_bytes(c), 0);
  EXPECT_EQ(MpiComm({}).scratch_bytes(c), 0);
}

TEST_P(Hierarchical, SameBitsWhateverTheTiming) {
  std::vector<std::vector<double>> runs;
  for (int delay : {0, 3}) {
    std::vector<int> hosts, everyone;
    for (int r = 0; r < world_size(); ++r) hosts.push_back(r % 2), everyone.push_back(r);
    const auto comm = hierarchical(hosts, GetParam(), {});
    std::vector<double> data(20'000);
    std::mt19937 random(static_cast<unsigned>(comm->rank()));
    for (double& x : data) x = std::normal_distribution<double>()(random);
    Collective c{.kind = Kind::all_reduce, .dtype = DType::f64, .group = everyone, .counts = {std::ssize(data)}};
    c.send = c.recv = data.data();
    std::this_thread::sleep_for(std::chrono::milliseconds(delay * ((comm->rank() * 5) % 7)));
    comm->wait(comm->start(c, exec_));
    runs.push_back(data);
    const std::vector<std::byte> all = comm->gather_all(std::as_bytes(std::span(data)));
    for (int r = 0; r < comm->size(); ++r)
      EXPECT_EQ(std::memcmp(all.data() + r * data.size() * sizeof(double), data.data(), data.size() * sizeof(double)),
                0);
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST_P(Hierarchical, ControlTrafficIsCountedApart) {
  std::vector<int> hosts, everyone;
  for (int r = 0; r < world_size(); ++r) hosts.push_back(r % 2), everyone.push_back(r);
  const auto comm = hierarchical(hosts, GetParam());
  std::vector<double> loss{1.0};
  Collective c{.kind = Kind::all_reduce, .dtype = DType::f64, .group = everyone, .counts = {1}, .control = true};
  c.send = c.recv = loss.data();

  comm->wait(comm->start(c, exec_));

  EXPECT_EQ(loss[0], comm->size());
  EXPECT_EQ(comm->counters().received_bytes, 0);
  EXPECT_EQ(comm->counters().outside_bytes, 0);
  EXPECT_EQ(sum(*comm, comm->counters().control_bytes), 2 * 8 * (comm->size() - 1));
}

TEST_P(Hierarchical, AStallNamesTheCollectiveAndTheRunMayGoOn) {
  if (world_size() < 4 || world_size() % 2 != 0) return;
  std::vector<int> hosts, everyone;
  for (int r = 0; r < world_size(); ++r) hosts.push_back(r / 2), everyone.push_back(r);
  const auto comm = hierarchical(hosts, GetParam());
  std::vector<double> data(5000, 1.0);
  Collective c{.kind = Kind::all_reduce, .dtype = DType::f64, .group = everyone, .counts = {5000}, .label = "grad fc"};
  c.send = c.recv = data.data();
  comm->barrier();
  comm->stall_seconds = 0.2;
  Token token = 0;
  if (comm->rank() != 0) { // rank 0 does not come
    token = comm->start(c, exec_);
    try {
      comm->wait(token);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("'grad fc' stalled on rank " + std::to_string(comm->rank())), std::string::npos) << text;
      EXPECT_NE(text.find("got no progress for 0.2 s, expected"), std::string::npos) << text;
      if (comm->rank() == 1) {
        EXPECT_NE(text.find("a message from rank 0. "), std::string::npos) << text;
      }
    }
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    token = comm->start(c, exec_);
  }
  comm->stall_seconds = 60;
  comm->wait(token);
  EXPECT_EQ(data[123], comm->size());
  EXPECT_THROW(comm->wait(token), Bug);
}

INSTANTIATE_TEST_SUITE_P(Queues, Hierarchical, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "OneInside" : "TwoInside"; });

} // namespace
