// The back end on NCCL against its stand-in: which calls it makes, when communicators are made and how they end, errors
// that come late, and who is refused. Results are held to serial ones by collectives_test.cpp.
#include "comm/cuda/nccl.hpp"

#include "base/error.hpp"
#include "comm/hierarchical.hpp"
#include "comm/mpi.hpp"
#include "comm/mpi_session.hpp"
#include "comm/staged.hpp"
#include "device/arena.hpp"
#include "standins/nccl.hpp"
#include "standins/standins.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace {

using namespace soybean;
using namespace soybean::comm;
using test::nccl_standin;

std::unique_ptr<Comm> mpi() {
  return std::make_unique<MpiComm>(MpiOptions{});
}

std::unique_ptr<Comm> nccl() {
  return std::make_unique<NcclComm>(mpi(), 0);
}

/// NCCL inside hosts, MPI between them.
std::unique_ptr<Comm> in_stages(const std::vector<int>& hosts) {
  return std::make_unique<HierarchicalComm>(Halves{nccl(), std::make_unique<StagedComm>(mpi()), nullptr}, hosts);
}

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    return error.what();
  }
  return "no error";
}

class Nccl : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(nccl_standin().alive, 0);
    nccl_standin() = {};
    standins::reset();
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    everyone_.resize(static_cast<std::size_t>(size_));
    std::iota(everyone_.begin(), everyone_.end(), 0);
    neighbours_ = {rank_ - rank_ % 2};
    if (neighbours_[0] + 1 < size_) neighbours_.push_back(neighbours_[0] + 1);
  }

  void TearDown() override { EXPECT_EQ(standins::faults(), std::vector<std::string>()); }

  Collective all_reduce(const std::vector<int>& group, std::vector<float>& data) const {
    Collective c{.kind = Kind::all_reduce, .group = group, .counts = {std::ssize(data)}, .label = "grad"};
    c.send = c.recv = data.data();
    return c;
  }

  int size_ = 1, rank_ = 0;
  std::vector<int> everyone_, neighbours_;
  device::Exec exec_{1, 0};
};

TEST_F(Nccl, CommunicatorsAreSplitOnceInPreparation) {
  const auto comm = nccl();
  comm->prepare({everyone_, neighbours_, neighbours_, {rank_}});
  EXPECT_EQ(nccl_standin().splits, size_ > 2 ? 1 : 0); // two of two are everyone
  comm->prepare({neighbours_, everyone_});
  EXPECT_EQ(nccl_standin().splits, size_ > 2 ? 1 : 0);
  std::vector<int> backwards(everyone_.rbegin(), everyone_.rend());
  comm->prepare({backwards});
  std::vector<float> data(3, 1.0f);
  comm->wait(comm->start(all_reduce(backwards, data), exec_));
  EXPECT_EQ(data[0], size_);
}

TEST_F(Nccl, AGroupThatWasNotPreparedIsABug) {
  if (size_ < 3) return;
  const auto comm = nccl();
  std::vector<float> data(3);
  try {
    comm->start(all_reduce(neighbours_, data), exec_);
    if (neighbours_.size() > 1) ADD_FAILURE() << "no error";
  } catch (const Bug& bug) {
    EXPECT_NE(std::string(bug.what()).find("nccl: a collective of a group that was not prepared"), std::string::npos);
  }
  comm->barrier();
}

TEST_F(Nccl, EqualPartsAreScatteredAndUnequalOnesReducedInOneGroup) {
  const auto comm = nccl();
  std::vector<float> send(static_cast<std::size_t>(4 * size_ + 3), 1.0f), recv(7);
  Collective c{.kind = Kind::reduce_scatter, .group = everyone_};
  c.send = send.data();
  c.recv = recv.data();
  c.counts.assign(everyone_.size(), 4);
  comm->wait(comm->start(c, exec_));
  if (size_ > 1) {
    EXPECT_EQ(nccl_standin().reduce_scatters, 1);
    EXPECT_EQ(nccl_standin().reduces, 0);
  }
  c.counts.back() += 3;
  c.counts.front() = size_ > 1 ? 0 : 7;
  comm->wait(comm->start(c, exec_));
  if (size_ > 1) {
    EXPECT_EQ(nccl_standin().reduces, size_ - 1); // nothing for the first member
    EXPECT_EQ(nccl_standin().groups, 1);
  }
}

TEST_F(Nccl, HostExecsAndControlTrafficDoNotTouchTheAccelerator) {
  const auto comm = nccl();
  const device::Exec host(1);
  std::vector<float> data(100, 1.0f);
  comm->wait(comm->start(all_reduce(everyone_, data), host));
  EXPECT_EQ(data[99], size_);
  EXPECT_EQ(sum(*comm, 1.0), size_);
  EXPECT_EQ(nccl_standin().all_reduces, 0);
}

TEST_F(Nccl, CommunicatorsEndInOrder) {
  {
    const auto comm = nccl();
    comm->prepare({neighbours_});
    EXPECT_GE(nccl_standin().alive, 1);
  }
  EXPECT_EQ(nccl_standin().alive, 0);
  EXPECT_EQ(nccl_standin().aborted, 0);
}

TEST_F(Nccl, AnErrorThatComesLateEndsAllCommunicators) {
  auto comm = nccl();
  comm->prepare({neighbours_});
  const int alive = nccl_standin().alive;
  std::vector<float> data(10, 1.0f);
  const Token token = comm->start(all_reduce(everyone_, data), exec_);
  nccl_standin().async = ncclRemoteError;
  EXPECT_EQ(error_of([&] { comm->wait(token); }),
            fmt::format("a collective of NCCL: failed on rank {}, remote process exited (). NCCL_DEBUG=INFO shows more",
                        rank_));
  EXPECT_EQ(error_of([&] { comm->start(all_reduce(everyone_, data), exec_); }),
            "comm: nccl was given up after an error");
  comm.reset();
  EXPECT_EQ(nccl_standin().alive, 0);
  EXPECT_EQ(nccl_standin().aborted, alive);
}

/// Everything that the back end calls, once. `failing`: the call that fails; those that make communicators at once,
/// others when control traffic, which an error must not leave under way, is over.
void use_all(const std::vector<int>& everyone, const std::vector<int>& neighbours, const device::Exec& exec,
             const std::string& failing = "") {
  const bool makes = failing == "ncclCommInitRank" || failing == "ncclCommSplit";
  if (makes) standins::fail_call(failing);
  const int rank = world_rank(), size = static_cast<int>(everyone.size());
  const auto comm = nccl();
  comm->prepare({neighbours});
  if (!makes) standins::fail_call(failing);
  std::vector<float> data(64, 1.0f), part(64);
  const auto run = [&](Collective c) {
    c.send = data.data();
    c.recv = part.data();
    comm->wait(comm->start(c, exec));
  };
  run({.kind = Kind::all_reduce, .group = everyone, .counts = {8}});
  run({.kind = Kind::reduce_scatter, .group = everyone, .counts = std::vector<std::int64_t>(everyone.size(), 2)});
  Collective uneven{.kind = Kind::reduce_scatter, .group = everyone};
  for (int r = 0; r < size; ++r) uneven.counts.push_back(1 + r % 2);
  run(uneven);
  Collective exchange{.kind = Kind::exchange};
  exchange.sends = {{(rank + 1) % size, data.data(), 3}};
  exchange.receives = {{(rank + size - 1) % size, part.data(), 3}};
  run(exchange);
  device::Event reached(0);
  reached.record(exec.stream());
  comm->fence(reached);
}

TEST_F(Nccl, EveryCallThatFailsIsNamedAndNothingIsLeft) {
  if (size_ == 1) return; // nothing is called for groups of one
  std::vector<std::string> names{"ncclCommInitRank", "ncclAllReduce",  "ncclReduceScatter",
                                 "ncclReduce",       "ncclGroupStart", "ncclGroupEnd",
                                 "ncclSend",         "ncclRecv",       "ncclCommGetAsyncError"};
  if (size_ > 2) names.push_back("ncclCommSplit");
  use_all(everyone_, neighbours_, exec_);
  for (const std::string& name : names) {
    try {
      use_all(everyone_, neighbours_, exec_, name);
      ADD_FAILURE() << name << ": no error";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with(fmt::format("{}: failed on rank {}, ", name, rank_))) << text;
      EXPECT_EQ(error.code(), ExitCode::failed);
    }
    EXPECT_EQ(nccl_standin().alive, 0) << name;
    standins::fail_call("");
  }
  use_all(everyone_, neighbours_, exec_); // the library is as good as new
}

TEST_F(Nccl, RanksOnOneAcceleratorAreRefusedAndAutoTakesMpi) {
  if (size_ == 1) return;
  const Place place{.device = 0, .hosts = host_names()};
  try {
    make_comm("nccl", place);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(error.on_all_ranks());
    EXPECT_EQ(std::string(error.what()),
              "comm: nccl, got ranks 0 and 1 on one accelerator of " + place.hosts[0] +
                  " expected an accelerator for each rank. Use parallel.comm = \"mpi\", or start one rank per "
                  "accelerator");
  }
  for (const char* name : {"auto", "mpi", "hierarchical"}) {
    const std::unique_ptr<Comm> comm = make_comm(name, place);
    std::vector<float> data(10, 1.0f);
    comm->wait(comm->start(all_reduce(everyone_, data), exec_));
    EXPECT_EQ(data[9], size_) << name;
  }
  EXPECT_EQ(nccl_standin().all_reduces, 0);
}

/// Steps of collectives of all kinds; between the first and the last nothing may be allocated, by cudaMalloc or
/// cudaHostAlloc.
std::int64_t waits_in_steady_state(Comm& comm, const device::Exec& exec, const std::vector<int>& everyone) {
  const device::Arena data(exec, 4000), part(exec, 4000);
  Collective sums{.kind = Kind::all_reduce, .group = everyone, .counts = {1000}};
  sums.send = sums.recv = data.data();
  Collective scatter{.kind = Kind::reduce_scatter, .group = everyone};
  scatter.counts.assign(everyone.size(), 10);
  scatter.send = data.data();
  scatter.recv = part.data();
  Collective exchange{.kind = Kind::exchange};
  exchange.sends = {{(comm.rank() + 1) % comm.size(), data.data(), 500}};
  exchange.receives = {{(comm.rank() + comm.size() - 1) % comm.size(), part.data(), 500}};
  comm.prepare({everyone, everyone});
  for (int step = 0; step < 30; ++step) {
    if (step == 10) standins::reset();
    const Token a = comm.start(sums, exec), b = comm.start(scatter, exec), c = comm.start(exchange, exec);
    comm.wait(a);
    comm.wait(b);
    comm.wait(c);
  }
  EXPECT_EQ(standins::counts().allocations, 0);
  EXPECT_EQ(standins::counts().pageable_copies, 0);
  EXPECT_EQ(standins::faults(), std::vector<std::string>());
  return standins::counts().host_waits;
}

TEST_F(Nccl, SteadyStateNeitherAllocatesNorMakesTheHostWait) {
  EXPECT_EQ(waits_in_steady_state(*nccl(), exec_, everyone_), 0);
  StagedComm staged(std::make_unique<MpiComm>(MpiOptions{})); // whose host only asks whether copies are done
  EXPECT_EQ(waits_in_steady_state(staged, exec_, everyone_), 0);
}

TEST_F(Nccl, StepsCanBeRecordedAndLaunchedAgain) {
  standins::set_recording(true);
  const auto comm = nccl();
  EXPECT_TRUE(comm->recordable());
  std::vector<float> data(10, 1.0f);
  const Collective sums = all_reduce(everyone_, data);
  comm->prepare({everyone_});
  device::Recording recording;
  ASSERT_TRUE(recording.begin(exec_.stream()));
  comm->wait(comm->start(sums, exec_));
  recording.end(exec_.stream());
  EXPECT_EQ(data[0], 1.0f);
  recording.launch(exec_.stream());
  recording.launch(exec_.stream());
  EXPECT_EQ(data[0], size_ == 1 ? 1.0f : static_cast<float>(size_ * size_));
}

/// What the watchdog says of a collective that does not end.
std::string stall_text(const std::string& what) {
  return fmt::format("comm: {} stalled on rank {}, got no end of it for 0.2 s, expected all ranks of its group to take "
                     "part. Look at what the other ranks last reported: one may have died, hang or lag behind",
                     what, world_rank());
}

TEST_F(Nccl, TheWatchdogNamesTheFirstCollectiveThatDoesNotEndAndFreesTheAccelerator) {
  if (size_ == 1) return; // nothing is called for groups of one
  auto comm = nccl();
  comm->stall_seconds = 0.2;
  nccl_standin().ending = 1;
  std::vector<float> data(4, 1.0f);
  for (const char* label : {"first", "second", "third"}) {
    Collective c = all_reduce(everyone_, data);
    c.label = label;
    comm->wait(comm->start(c, exec_));
  }
  device::Event reached(0);
  reached.record(exec_.stream());
  EXPECT_FALSE(reached.done());
  EXPECT_EQ(error_of([&] { comm->fence(reached); }), stall_text("'second'"));
  exec_.fence(); // as a destructor may do before the back end's
  comm.reset();
  EXPECT_EQ(nccl_standin().alive, 0);
}

// NCCL's abort does not return before they are gone.
TEST_F(Nccl, TheWatchdogDoesNotWaitForRecordings) {
  if (size_ == 1) return;
  standins::set_recording(true);
  auto comm = nccl();
  comm->stall_seconds = 0.2;
  std::vector<float> data(4, 1.0f);
  const Collective sums = all_reduce(everyone_, data);
  auto recording = std::make_unique<device::Recording>();
  ASSERT_TRUE(recording->begin(exec_.stream()));
  comm->begin_recording();
  comm->wait(comm->start(sums, exec_));
  comm->end_recording();
  recording->end(exec_.stream());
  nccl_standin().ending = 1;
  recording->launch(exec_.stream());
  recording->launch(exec_.stream());
  device::Event reached(0);
  reached.record(exec_.stream());
  EXPECT_EQ(error_of([&] { comm->fence(reached); }), stall_text("a kernel or a collective"));
  exec_.fence();
  EXPECT_EQ(nccl_standin().alive, 1);
  recording.reset();
  comm.reset();
  EXPECT_EQ(nccl_standin().alive, 0);
  EXPECT_EQ(nccl_standin().aborted, 1);
}

// After an error of another layer, or of one of the halves, nothing may wait for what is under way on the accelerator.
TEST_F(Nccl, WhatIsUnderWayCanBeGivenUp) {
  if (size_ == 1) return;
  for (const bool stages : {false, true}) {
    auto comm = stages ? in_stages(std::vector<int>(everyone_.size(), 0)) : nccl();
    comm->prepare({everyone_});
    nccl_standin().ending = 0;
    std::vector<float> data(4, 1.0f);
    const Token token = comm->start(all_reduce(everyone_, data), exec_);
    EXPECT_FALSE(comm->done(token));
    comm->abort();
    exec_.fence();
    comm.reset();
    EXPECT_EQ(nccl_standin().alive, 0);
    nccl_standin().ending = -1;
  }
}

TEST_F(Nccl, TheStagesInsideHostsAreNamedWhereTheyStall) {
  if (size_ == 1) return;
  std::vector<int> hosts;
  hosts.reserve(static_cast<std::size_t>(size_));
  for (int r = 0; r < size_; ++r) hosts.push_back(r / 2);
  auto comm = in_stages(hosts);
  comm->stall_seconds = 0.2;
  comm->prepare({everyone_});
  nccl_standin().ending = 0;
  std::vector<float> data(8, 1.0f);
  if (size_ % 2 == 0) { // every rank has something to do inside its host
    const Token token = comm->start(all_reduce(everyone_, data), exec_);
    EXPECT_EQ(error_of([&] { comm->wait(token); }), stall_text("'grad'"));
  }
  comm->abort();
  exec_.fence();
  comm.reset();
  EXPECT_EQ(nccl_standin().alive, 0);
}

// More than the back end keeps to name them: those of steps before come first in its list, not those recorded.
TEST_F(Nccl, StepsOfManyCollectivesCanBeRecorded) {
  standins::set_recording(true);
  for (const int count : {300, 600, 1100}) {
    const auto comm = nccl();
    std::vector<float> data(1);
    const Collective sums = all_reduce(everyone_, data);
    device::Recording recording;
    const auto step = [&] {
      for (int i = 0; i < count; ++i) comm->wait(comm->start(sums, exec_));
    };
    step();
    step();
    ASSERT_TRUE(recording.begin(exec_.stream()));
    comm->begin_recording();
    step();
    comm->end_recording();
    recording.end(exec_.stream());
    recording.launch(exec_.stream());
    device::Event reached(0);
    reached.record(exec_.stream());
    EXPECT_EQ(error_of([&] { comm->fence(reached); }), "no error") << count;
  }
}

TEST_F(Nccl, ItsOwnAcceleratorForEachRankGetsIt) {
  if (size_ == 1) return;
  standins::set_accelerators(std::vector<standins::Accelerator>(static_cast<std::size_t>(size_)));
  const device::Exec exec(1, rank_);
  for (const char* name : {"auto", "nccl", "hierarchical"}) {
    const std::unique_ptr<Comm> comm = make_comm(name, {.device = rank_, .hosts = host_names()});
    std::vector<float> data(10, 1.0f);
    const int before = nccl_standin().all_reduces;
    comm->prepare({everyone_});
    comm->wait(comm->start(all_reduce(everyone_, data), exec));
    EXPECT_EQ(data[9], size_) << name;
    EXPECT_EQ(nccl_standin().all_reduces, before + 1) << name;
  }
}

TEST_F(Nccl, IsABackEndOfThisBuild) {
  try {
    make_comm("carrier_pigeon");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "comm: back end, got \"carrier_pigeon\" expected one that this build has: auto, mpi, mpi_library, "
              "hierarchical, nccl. See the README on parallel.comm");
  }
}

} // namespace
