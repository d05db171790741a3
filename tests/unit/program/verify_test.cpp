// Each fault that verify knows, made by spoiling a valid program.
#include "base/error.hpp"
#include "models.hpp"
#include "program/fuse.hpp"
#include "program/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace soybean::program {
namespace {

class VerifyProgram : public ::testing::Test {
protected:
  graph::Graph graph = tiny_mlp();
  plan::Plan plan = data_plan(graph, {{2}});
  Program program = lower(graph, plan, Mode::train);

  std::size_t find(Kind kind, int nth = 0) const {
    for (std::size_t i = 0; i < program.instructions.size(); ++i)
      if (program.instructions[i].kind == kind && nth-- == 0) return i;
    throw Bug("no such instruction");
  }
  std::size_t find_node(const std::string& name) const {
    for (std::size_t i = 0; i < program.instructions.size(); ++i)
      if (program.instructions[i].kind == Kind::compute && graph.nodes[program.instructions[i].node].name == name)
        return i;
    throw Bug("no such node");
  }
  Instruction& at(std::size_t i) { return program.instructions[i]; }
  void erase(std::size_t i) {
    program.instructions.erase(program.instructions.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void insert(std::size_t i, const Instruction& instruction) {
    program.instructions.insert(program.instructions.begin() + static_cast<std::ptrdiff_t>(i), instruction);
  }
  void expect_bug(const std::string& text) {
    try {
      verify(graph, plan, program);
      ADD_FAILURE() << "not caught: " << text;
    } catch (const Bug& bug) {
      EXPECT_NE(std::string(bug.what()).find(text), std::string::npos) << bug.what();
    }
  }
};

TEST_F(VerifyProgram, AcceptsWhatLoweringMakes) {
  EXPECT_NO_THROW(verify(graph, plan, program));
}

TEST_F(VerifyProgram, ReadBeforeWritten) {
  std::swap(at(find(Kind::start, 2)), at(find_node("fc2.weight.grad")));
  expect_bug("read before it is written");
}

TEST_F(VerifyProgram, ReadBeforeItArrives) {
  const std::size_t wait = find(Kind::wait, 2), update = find_node("fc2.weight");
  const Instruction waiting = at(wait);
  insert(update + 1, waiting);
  erase(wait);
  expect_bug("freed while under way");
}

TEST_F(VerifyProgram, ReadAfterFree) {
  const std::size_t free = find(Kind::free); // fc1, after bias_add
  const Instruction freed = at(free);
  erase(free);
  insert(1, freed);
  expect_bug("read after it is freed");
}

TEST_F(VerifyProgram, FreedTwice) {
  const std::size_t free = find(Kind::free);
  insert(free, at(free));
  expect_bug("freed twice");
}

TEST_F(VerifyProgram, NeverFreed) {
  erase(find(Kind::free));
  expect_bug("never freed");
}

TEST_F(VerifyProgram, PersistentIsNotFreed) {
  at(find(Kind::free)).inputs.push_back(0);
  expect_bug("not transient but freed");
}

TEST_F(VerifyProgram, NodeLeftOut) {
  erase(find_node("fc1.bias"));
  expect_bug("fc1.bias is left out");
}

TEST_F(VerifyProgram, NeverWaited) {
  erase(find(Kind::wait, 4));
  expect_bug("freed while under way");
}

TEST_F(VerifyProgram, WaitWithoutStart) {
  at(find(Kind::wait)).token = 77;
  expect_bug("never started");
}

TEST_F(VerifyProgram, TokenUsedTwice) {
  at(find(Kind::start, 1)).token = at(find(Kind::start, 0)).token;
  expect_bug("token used twice");
}

TEST_F(VerifyProgram, WrongElements) {
  at(find(Kind::start, 2)).step.elements += 1;
  expect_bug("do not add up");
}

TEST_F(VerifyProgram, BytesOtherThanPlanned) {
  plan.bytes += 4;
  expect_bug("where the plan says");
}

TEST_F(VerifyProgram, WrongOperand) {
  Instruction& update = at(find_node("fc2.weight")); // its gradient in place of its momentum
  std::swap(update.inputs[1], update.inputs[3]);
  expect_bug("where it needs");
}

TEST_F(VerifyProgram, ParameterReadAfterItsUpdate) {
  const std::size_t update = find_node("fc2.weight");
  Instruction& last = at(find_node("fc1.weight")); // reads fc2's new weight as if it were its own
  last.inputs[0] = at(update).inputs[0];
  expect_bug("where it needs");
}

TEST_F(VerifyProgram, UpdateThatIsLost) {
  program = lower(graph, plan, Mode::evaluate);
  program.training = true;
  expect_bug("is left out");
}

TEST_F(VerifyProgram, MemoryGivenAwayTooEarly) {
  run_passes(graph, program, {"fuse"});
  // fc1.relu is read again by relu_grad, so nothing may take its memory
  const BufferId relu = at(find_node("fc1.relu")).outputs[0];
  const BufferId gradient = at(find_node("fc1.bias_add.grad")).outputs[0];
  program.buffers[gradient].alias = relu;
  EXPECT_NO_THROW(verify(graph, plan, program)); // that is where it dies
  program.buffers[gradient].alias = at(find_node("fc2")).outputs[0];
  expect_bug("shares memory with no operand");
}

TEST_F(VerifyProgram, EpilogueThatDoesNotFollow) {
  fuse(graph, program);
  Instruction& dense = at(find_node("fc1"));
  ASSERT_EQ(dense.epilogue.size(), 2u);
  dense.epilogue.erase(dense.epilogue.begin());
  expect_bug("fc1.relu does not follow on fc1");
}

TEST_F(VerifyProgram, EpilogueOfWhatIsReadElsewhere) {
  // fc1.relu, which relu_grad reads, taken into the call of fc2
  const std::size_t relu = find_node("fc1.relu"), dense = find_node("fc2");
  ASSERT_EQ(at(dense).inputs[0], at(relu).outputs[0]);
  Instruction joined = at(relu);
  joined.epilogue = {at(dense).node};
  joined.inputs.push_back(at(dense).inputs[1]);
  joined.outputs = at(dense).outputs;
  at(relu) = joined;
  erase(dense);
  expect_bug("fc1.relu is never stored but read");
}

TEST_F(VerifyProgram, EpilogueInAnotherTiling) {
  fuse(graph, program);
  const graph::NodeId bias = at(find_node("fc1")).epilogue[0];
  plan.choices[bias][0] = choice_of(graph, graph.nodes[bias], "c");
  expect_bug("fc1.bias_add follows fc1 in another tiling");
}

TEST_F(VerifyProgram, TilingOtherThanTheForm) {
  plan.choices[0][0] = choice_of(graph, graph.nodes[0], "n");
  expect_bug("where its form says");
}

TEST_F(VerifyProgram, MetricThatIsGone) {
  program.metrics[0] = program.metrics[1];
  expect_bug("metric is not there");
}

TEST_F(VerifyProgram, NodeThatIsComputedTwice) {
  const std::size_t relu = find_node("fc1.relu");
  const Instruction again = at(relu);
  insert(relu + 1, again);
  expect_bug("fc1.relu is computed twice");
}

TEST_F(VerifyProgram, BuffersOutOfOrder) {
  std::swap(program.buffers.front(), program.buffers.back());
  expect_bug("out of order");
}

} // namespace
} // namespace soybean::program
