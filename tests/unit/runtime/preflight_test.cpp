#include "runtime/preflight.hpp"

#include "runtime/agreement.hpp"
#include "runtime/context.hpp"

#include "base/error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace soybean::runtime {
namespace {

Cores cores(int first, int count) {
  Cores set;
  for (int c = first; c < first + count; ++c) set.set(static_cast<std::size_t>(c));
  return set;
}

/// Two hosts with two ranks each, every rank on four cores of its own, plenty of everything.
Preflight healthy() {
  Preflight facts;
  for (int rank = 0; rank < 4; ++rank)
    facts.ranks.push_back({.host = rank < 2 ? "node1" : "node2",
                           .cores = cores(4 * (rank % 2), 4),
                           .threads = 4,
                           .free_memory = 64'000'000'000,
                           .total_memory = 70'000'000'000,
                           .needed_memory = 2'000'000'000});
  facts.mpi = "Some MPI v1";
  facts.run_dir = "runs/x";
  facts.disk = {"xfs", 500'000'000'000, 1'000'000'000'000};
  return facts;
}

TEST(Preflight, HealthyRunNeedsNoAdvice) {
  Preflight facts = healthy();
  judge(facts);
  EXPECT_TRUE(facts.advice.empty());
  ASSERT_EQ(facts.hosts.size(), 2u);
  EXPECT_EQ(facts.hosts[1].name, "node2");
  EXPECT_EQ(facts.hosts[1].ranks, 2);
  EXPECT_EQ(facts.hosts[1].cores, 8);
  EXPECT_EQ(facts.hosts[1].threads, 8);
  EXPECT_EQ(facts.hosts[1].needed_memory, 4'000'000'000);
  EXPECT_EQ(facts.free_memory_per_rank, 32'000'000'000);
  EXPECT_EQ(to_string(facts), "4 ranks on 2 hosts, Some MPI v1\n"
                              "  node1: 2 ranks, 8 cores, 8 threads, 64.0 GB free, 4.0 GB needed\n"
                              "  node2: 2 ranks, 8 cores, 8 threads, 64.0 GB free, 4.0 GB needed\n"
                              "run directory runs/x: xfs, 500.0 GB free\n");
}

std::vector<std::string> advice_of(Preflight facts) {
  judge(facts);
  return facts.advice;
}

/// The same on a GPU for each rank.
Preflight with_gpus() {
  Preflight facts = healthy();
  facts.accelerator = "CUDA 13.0";
  for (std::size_t r = 0; r < facts.ranks.size(); ++r) {
    facts.ranks[r].device = "GPU " + std::to_string(r % 2) + ", Some GPU (0000:0" + std::to_string(r % 2) + ")";
    facts.ranks[r].free_device_memory = 80'000'000'000;
    facts.ranks[r].total_device_memory = 85'000'000'000;
  }
  return facts;
}

TEST(Preflight, GpusAreListedByRankAndTakeTheMemory) {
  Preflight facts = with_gpus();
  judge(facts);
  EXPECT_TRUE(facts.advice.empty());
  EXPECT_EQ(to_string(facts), "4 ranks on 2 hosts, Some MPI v1\n"
                              "CUDA 13.0\n"
                              "  node1: 2 ranks, 8 cores, 8 threads, 64.0 GB free\n"
                              "  node2: 2 ranks, 8 cores, 8 threads, 64.0 GB free\n"
                              "  rank 0: node1, GPU 0, Some GPU (0000:00), 80.0 GB free, 2.0 GB needed\n"
                              "  rank 1: node1, GPU 1, Some GPU (0000:01), 80.0 GB free, 2.0 GB needed\n"
                              "  rank 2: node2, GPU 0, Some GPU (0000:00), 80.0 GB free, 2.0 GB needed\n"
                              "  rank 3: node2, GPU 1, Some GPU (0000:01), 80.0 GB free, 2.0 GB needed\n"
                              "run directory runs/x: xfs, 500.0 GB free\n");
}

TEST(Preflight, RanksThatShareAGpuMayBeTooMuchForIt) {
  Preflight facts = with_gpus();
  facts.ranks[3].device = facts.ranks[2].device;
  for (RankFacts& rank : facts.ranks) rank.needed_memory = 50'000'000'000;
  judge(facts);
  EXPECT_EQ(facts.advice, std::vector<std::string>{"host node2, GPU 0, Some GPU (0000:00): 80.0 GB free, 100.0 GB "
                                                   "needed. Use more ranks or a smaller data.batch"});
}

TEST(Preflight, MoreThreadsThanCores) {
  Preflight facts = healthy();
  facts.ranks[0].threads = 5;
  EXPECT_EQ(advice_of(facts), std::vector<std::string>{"host node1: 2 ranks use 9 threads on 8 cores. Start fewer "
                                                       "ranks per host or set run.threads lower"});
}

TEST(Preflight, RanksBoundToOneCore) {
  Preflight facts = healthy();
  for (RankFacts& rank : facts.ranks) rank.threads = 1;
  facts.ranks[2].cores = facts.ranks[3].cores = cores(0, 1);
  const std::vector<std::string> advice = advice_of(facts);
  ASSERT_EQ(advice.size(), 2u);
  EXPECT_EQ(advice[1], "host node2: all 2 ranks are bound to one core. Pass --bind-to none to mpirun or give srun "
                       "--cpus-per-task");
}

TEST(Preflight, TwoOfManyRanksOnTheSameCore) {
  Preflight facts = healthy();
  for (RankFacts& rank : facts.ranks) {
    rank.host = "node1";
    rank.threads = 1;
  }
  facts.ranks[1].cores = facts.ranks[3].cores = cores(2, 1);
  EXPECT_EQ(advice_of(facts), std::vector<std::string>{"host node1: ranks 1 and 3 are bound to the same single core. "
                                                       "Pass --bind-to core or --bind-to none to mpirun"});
}

TEST(Preflight, LittleMemory) {
  Preflight facts = healthy();
  facts.ranks[3].free_memory = 3'000'000'000;
  EXPECT_EQ(advice_of(facts), std::vector<std::string>{"host node2: 3.0 GB free, 4.0 GB needed. Use more hosts or a "
                                                       "smaller data.batch"});
  facts.ranks[3].free_memory = 4'200'000'000;
  EXPECT_EQ(advice_of(facts), std::vector<std::string>{"host node2: 4.0 GB of 4.2 GB free memory needed. Close other "
                                                       "programs or use more hosts"});
}

std::string refusal_of(Preflight facts) {
  judge(facts);
  try {
    check_memory(facts);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Preflight, MoreThanAHostHasIsRefusedWhatOthersTakeIsNot) {
  Preflight facts = healthy();
  facts.ranks[2].needed_memory = 65'000'000'000; // with its neighbour 67 of 64 free, of 70 in all
  EXPECT_EQ(refusal_of(facts), "");
  EXPECT_EQ(advice_of(facts).size(), 1u);
  facts.ranks[2].needed_memory = 68'100'000'000;
  EXPECT_EQ(refusal_of(facts), "host node2: memory, got 70.1 GB needed by its 2 ranks expected at most 70.0 GB, all it "
                               "has. use a smaller data.batch, train.microbatches or more hosts");
}

TEST(Preflight, MoreThanAGpuHasIsRefused) {
  Preflight facts = with_gpus();
  facts.ranks[3].device = facts.ranks[2].device;
  for (RankFacts& rank : facts.ranks) rank.needed_memory = 41'000'000'000;
  EXPECT_EQ(refusal_of(facts), ""); // more than is free
  for (RankFacts& rank : facts.ranks) rank.needed_memory = 50'000'000'000;
  EXPECT_EQ(refusal_of(facts),
            "host node2, GPU 0, Some GPU (0000:00): memory, got 100.0 GB needed by 2 ranks expected "
            "at most 85.0 GB, all it has. use a smaller data.batch, train.microbatches or more GPUs");
}

TEST(Preflight, PoorPlaceForCheckpoints) {
  Preflight facts = healthy();
  facts.disk = {"tmpfs", 1'000'000'000, 100'000'000'000};
  EXPECT_EQ(advice_of(facts), (std::vector<std::string>{
                                  "run directory runs/x: on tmpfs, checkpoints take memory and do not survive the "
                                  "node. Set run.dir to a disk",
                                  "run directory runs/x: 1.0 GB of 100.0 GB free. Make room, checkpoints need it"}));
}

TEST(Preflight, OfThisProcess) {
  const auto comm = comm::make_self_comm();
  const Preflight facts = gather_preflight(*comm, {.threads = 1, .run_dir = "/tmp/does/not/exist/yet"});
  ASSERT_EQ(facts.hosts.size(), 1u);
  EXPECT_EQ(facts.hosts[0].name, host_name());
  EXPECT_EQ(facts.hosts[0].cores, static_cast<int>(bound_cores().count()));
  EXPECT_GT(facts.free_memory_per_rank, 0);
  EXPECT_GT(facts.hosts[0].total_memory, facts.hosts[0].free_memory);
  EXPECT_EQ(facts.disk.type, file_system("/tmp").type); // the nearest directory that exists
  EXPECT_GT(facts.disk.total_bytes, 0);
}

TEST(ThreadCount, WhatTheBindingLeavesUnlessAsked) {
  const auto comm = comm::make_self_comm();
  EXPECT_EQ(thread_count(0, *comm), static_cast<int>(bound_cores().count()));
  EXPECT_EQ(thread_count(3, *comm), 3);
}

} // namespace
} // namespace soybean::runtime
