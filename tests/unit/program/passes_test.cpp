#include "base/error.hpp"
#include "models.hpp"
#include "program/memory.hpp"
#include "program/program.hpp"

#include <gtest/gtest.h>

namespace soybean::program {
namespace {

BufferId find_buffer(const Program& p, const std::string& name) {
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].name == name) return static_cast<BufferId>(b);
  throw Bug("no buffer " + name);
}

TEST(InPlace, TakesTheMemoryOfWhatDies) {
  const graph::Graph g = tiny_cnn();
  Program p = lower(g, data_plan(g, {{2}}), Mode::train);
  run_passes(g, p, {"fuse"});
  const auto alias = [&](const std::string& name) { return p.buffers[find_buffer(p, name)].alias; };
  EXPECT_EQ(alias("conv.bias_add@split(0)"), find_buffer(p, "conv@split(0)"));
  EXPECT_EQ(alias("conv.relu@split(0)"), find_buffer(p, "conv.bias_add@split(0)"));
  EXPECT_EQ(alias("flat@split(0)"), -1); // relu's result is needed by its backward
  EXPECT_EQ(alias("fc.bias_add@split(0)"), find_buffer(p, "fc@split(0)"));
  EXPECT_EQ(alias("conv.relu.grad@split(0)"), find_buffer(p, "flat.grad@split(0)")); // flatten backward: other dims
  EXPECT_EQ(alias("fc.weight.grad@replicate"), find_buffer(p, "fc.weight.grad@partial")); // all-reduce
}

TEST(InPlace, LowersThePeak) {
  const graph::Graph g = tiny_cnn();
  Program p = lower(g, data_plan(g, {}), Mode::evaluate);
  const Workspaces none(p.instructions.size(), 0);
  const std::int64_t before = assign_memory(g, p, 0, none).arena_bytes;
  run_passes(g, p, {"fuse"});
  EXPECT_LT(assign_memory(g, p, 0, none).arena_bytes, before);
}

TEST(Passes, CanBeSkippedByName) {
  const graph::Graph g = tiny_mlp();
  Program p = lower(g, data_plan(g, {}), Mode::train);
  const std::string plain = to_string(g, p);
  EXPECT_TRUE(run_passes(g, p, {"in_place", "fuse", "overlap"}).empty());
  EXPECT_EQ(to_string(g, p), plain);
  EXPECT_EQ(run_passes(g, p, {"in_place"}).size(), passes().size() - 1);
  for (const Buffer& b : p.buffers) EXPECT_EQ(b.alias, -1);
  const std::vector<PassTime> times = run_passes(g, p);
  ASSERT_EQ(times.size(), passes().size());
  EXPECT_EQ(times[2].name, "in_place");
  EXPECT_GE(times[2].seconds, 0);
}

TEST(Passes, UnknownNameIsAnError) {
  const graph::Graph g = tiny_mlp();
  Program p = lower(g, data_plan(g, {}), Mode::train);
  try {
    run_passes(g, p, {"inplace"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "parallel.skip_passes: unknown pass, got \"inplace\" expected one of fuse, overlap, "
                           "in_place. check the spelling");
  }
}

} // namespace
} // namespace soybean::program
