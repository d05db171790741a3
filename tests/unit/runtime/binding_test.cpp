#include "runtime/binding.hpp"

#include "base/error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace soybean::runtime {
namespace {

using Ids = std::vector<std::string>;

std::string error_of(const std::vector<Visible>& ranks) {
  try {
    bind_devices(ranks, false);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Binding, RanksThatSeeAllTakeOneEachInOrder) {
  const Ids all = {"a", "b", "c", "d"};
  const std::vector<Visible> ranks = {{"n1", all}, {"n1", all}, {"n2", all}, {"n2", all}, {"n1", all}, {"n1", all}};
  EXPECT_EQ(bind_devices(ranks, false), (std::vector<int>{0, 1, 0, 1, 2, 3}));
}

TEST(Binding, ARankThatSeesOneTakesThatWhateverItsLocalRank) {
  const std::vector<Visible> ranks = {{"n1", {"a"}}, {"n1", {"b"}}, {"n1", {"c"}}};
  EXPECT_EQ(bind_devices(ranks, false), (std::vector<int>{0, 0, 0}));
}

TEST(Binding, OrdersThatDifferDoNotCollide) {
  const std::vector<Visible> ranks = {{"n1", {"b", "a"}}, {"n1", {"a", "b"}}, {"n1", {"a", "b", "c"}}};
  EXPECT_EQ(bind_devices(ranks, false), (std::vector<int>{0, 0, 2}));
}

TEST(Binding, EqualIdentitiesOnDifferentHostsAreDifferentDevices) {
  const std::vector<Visible> ranks = {{"n1", {"a"}}, {"n2", {"a"}}};
  EXPECT_EQ(bind_devices(ranks, false), (std::vector<int>{0, 0}));
}

TEST(Binding, SharingIsSpreadEvenlyWhereItIsAllowed) {
  const Ids two = {"a", "b"};
  const std::vector<Visible> ranks(5, Visible{"n1", two});
  EXPECT_EQ(bind_devices(ranks, true), (std::vector<int>{0, 1, 0, 1, 0}));
}

TEST(Binding, SharingIsRefusedOtherwise) {
  EXPECT_EQ(error_of({{"n1", {"gpu-7"}}, {"n2", {"gpu-7"}}, {"n1", {"gpu-7"}}}),
            "run.device: ranks 0 and 2 on host n1, got the same GPU (gpu-7) expected one for each. start one rank per "
            "GPU (srun --ntasks-per-node=GPUS --gpus-per-node=GPUS --gpu-bind=none, mpirun --map-by ppr:GPUS:node), "
            "or set run.share_devices = true");
}

TEST(Binding, RanksMakeWayForThoseThatSeeFewer) {
  EXPECT_EQ(bind_devices({{"n1", {"a", "b"}}, {"n1", {"a"}}}, false), (std::vector<int>{1, 0}));
  EXPECT_EQ(bind_devices({{"n1", {"a", "b"}}, {"n1", {"a"}}}, true), (std::vector<int>{1, 0}));
  EXPECT_EQ(bind_devices({{"n1", {"a", "b"}}, {"n1", {"b", "c"}}, {"n1", {"a"}}, {"n2", {"a"}}}, false),
            (std::vector<int>{1, 1, 0, 0}));
  const std::string text = error_of({{"n1", {"a", "b"}}, {"n1", {"a"}}, {"n1", {"b"}}});
  EXPECT_TRUE(text.starts_with("run.device: ranks 0 and 2 on host n1, got the same GPU (b) ")) << text;
}

TEST(Binding, ARankWithoutAnyIsNamed) {
  EXPECT_EQ(error_of({{"n1", {"a"}}, {"n2", {}}}),
            "run.device: rank 1 on host n2, got no GPU expected one. check nvidia-smi, CUDA_VISIBLE_DEVICES and the "
            "job's --gpus options");
  EXPECT_EQ(error_of({{"n1", {}, "the driver is for CUDA 11.4"}}),
            "run.device: rank 0 on host n1, got no GPU expected one. the driver is for CUDA 11.4");
}

TEST(Binding, AProgramWithoutGpusSaysSo) {
  const std::unique_ptr<comm::Comm> self = comm::make_self_comm();
  EXPECT_EQ(choose_device(*self, {}), -1);
  EXPECT_EQ(choose_device(*self, {.device = "cpu", .precision = DType::f64}), -1);
  try {
    choose_device(*self, {.device = "gpu"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "run.device: gpu, got a program built without GPUs expected one built with them. build "
                               "with cmake --preset cuda");
    EXPECT_TRUE(error.on_all_ranks());
  }
  try {
    choose_device(*self, {.tf32 = true});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "train.precision: on CPUs, got \"tf32\" expected \"fp32\" or \"fp64\". tf32 is a format of "
                 "GPUs, for a program built with cmake --preset cuda");
    EXPECT_TRUE(error.on_all_ranks());
  }
}

} // namespace
} // namespace soybean::runtime
