#include "runtime/initialise.hpp"

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "device/pack.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "plan/planner.hpp"
#include "runtime/profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace soybean::runtime {
namespace {

class Initialise : public ::testing::Test {
protected:
  Initialise() {
    graph_.name = "net";
    graph::TensorId x = ops::input_source(graph_, 3, {2, 4, 4});
    x = ops::conv2d_layer(graph_, "conv", x, {.channels = 5, .kernel = {3, 3}, .init = ops::Scheme::kaiming_normal});
    x = ops::flatten_layer(graph_, "flat", x); // its dense weight is kept with columns in another physical order
    x = ops::dense_layer(graph_, "fc", x, {.units = 4});
    ops::loss_layer(graph_, x);
    ops::add_backward_and_update(graph_, {.momentum = 0.9});
    const plan::Plan plan = plan::make_plan(graph_, {}, {.strategy = "data"});
    std::vector<program::Program> programs = {program::lower(graph_, plan, program::Mode::train)};
    executor_ = std::make_unique<Executor>(graph_, std::move(programs), Context{exec_, *comm_, {}, 0});
  }
  /// A parameter or state in logical order.
  std::vector<float> values(const std::string& name) {
    const Block& block = executor_->persistent(graph::find_tensor(graph_, name));
    std::vector<float> result(static_cast<std::size_t>(block.view.size()));
    device::pack(exec_, block.view, block.view.box, result.data(), device::Order::logical);
    return result;
  }

  graph::Graph graph_;
  std::unique_ptr<comm::Comm> comm_ = comm::make_self_comm();
  device::Exec exec_{2};
  std::unique_ptr<Executor> executor_;
};

TEST_F(Initialise, IsAFunctionOfSeedNameAndLogicalIndex) {
  initialise_parameters(graph_, *executor_, 11);
  const double scale = graph_.tensors[graph::find_tensor(graph_, "fc.weight")].init.scale;
  const std::vector<float> weight = values("fc.weight");
  const philox::Stream stream{11, hash_text("fc.weight"), 0};
  for (std::size_t i = 0; i < weight.size(); ++i)
    ASSERT_EQ(weight[i], static_cast<float>((2 * philox::uniform(stream, i) - 1) * scale)) << i;
  const double deviation = graph_.tensors[graph::find_tensor(graph_, "conv.weight")].init.scale;
  const std::vector<float> kernel = values("conv.weight");
  const philox::Stream normal{11, hash_text("conv.weight"), 0};
  for (std::size_t i = 0; i < kernel.size(); ++i)
    ASSERT_EQ(kernel[i], static_cast<float>(philox::normal(normal, i) * deviation)) << i;
  EXPECT_GT(deviation, 0);
}

TEST_F(Initialise, SeedsDifferAndStatesAreZero) {
  initialise_parameters(graph_, *executor_, 1);
  const std::vector<float> first = values("fc.weight");
  initialise_parameters(graph_, *executor_, 2);
  EXPECT_NE(values("fc.weight"), first);
  initialise_parameters(graph_, *executor_, 1);
  EXPECT_EQ(values("fc.weight"), first);
  EXPECT_EQ(values("fc.weight.momentum"), std::vector<float>(first.size(), 0.0f));
  EXPECT_EQ(values("conv.bias"), std::vector<float>(5, 0.0f)); // kaiming: no bias
}

TEST_F(Initialise, ProfileNamesWhatTookTime) {
  initialise_parameters(graph_, *executor_, 1);
  for (const Block& block : executor_->fed())
    std::fill_n(block.view.as<std::byte>(), block.view.size() * size_of(block.view.dtype), std::byte{0});
  executor_->run(0);
  executor_->run(0);
  const Profile& profile = executor_->profile(0);
  EXPECT_EQ(profile.steps, 2);
  EXPECT_GT(profile.last.computing_seconds, 0);
  EXPECT_LE(profile.last.computing_seconds, profile.last.seconds);
  EXPECT_EQ(profile.sum.data_bytes, 0);
  const std::string text = report(graph_, executor_->program(0), profile, 3);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_NE(text.find("computing ms"), std::string::npos);
}

} // namespace
} // namespace soybean::runtime
