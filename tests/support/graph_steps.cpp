#include "support/graph_steps.hpp"

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "device/pack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace soybean::support {

using runtime::Block;
using runtime::Executor;

std::vector<program::Program> programs_of(const graph::Graph& graph, const plan::Plan& plan,
                                          const std::vector<std::string>& skip) {
  std::vector<program::Program> programs;
  for (const program::Mode mode : {program::Mode::train, program::Mode::evaluate}) {
    programs.push_back(program::lower(graph, plan, mode));
    program::run_passes(graph, programs.back(), skip);
    program::verify(graph, plan, programs.back());
  }
  return programs;
}

namespace {

/// One element of a source.
float fed_value(const graph::Graph& graph, const graph::Tensor& t, std::int64_t step, std::int64_t index) {
  using graph::Role;
  const double draw =
      philox::uniform({17, hash_text(t.name), static_cast<std::uint64_t>(step)}, static_cast<std::uint64_t>(index));
  if (t.role == Role::input && t.dtype == DType::i32)
    return static_cast<float>(std::floor(draw * static_cast<double>(graph.vocabulary)));
  switch (t.role) {
  case Role::share: // some samples are not mixed
    return draw < 0.2 ? 1.0f : static_cast<float>(draw);
  case Role::input:
  case Role::target:
    return static_cast<float>(2 * draw - 1);
  case Role::label:
  case Role::partner_label:
    return static_cast<float>(std::floor(draw * static_cast<double>(graph.tensors[graph.logits].shape[1])));
  case Role::sample_weight: // some rows are padding
    return draw < 0.2 ? 0.0f : 1.0f / static_cast<float>(t.shape[0]);
  default: // learning rate, step, bias corrections
    return index == 0 ? 0.05f : index == 1 ? static_cast<float>(step) : 1 - 1 / static_cast<float>(step + 2);
  }
}

template<class T>
void feed_block(Executor& executor, const graph::Graph& graph, const Block& block, std::int64_t step) {
  const Box& box = block.view.box;
  std::vector<T> values;
  for (std::int64_t k = 0; k < volume(box); ++k) {
    std::int64_t index = 0, stride = 1, rest = k;
    for (std::size_t d = box.extents.size(); d-- > 0;) {
      index += (box.offsets[d] + rest % box.extents[d]) * stride;
      rest /= box.extents[d];
      stride *= block.view.global[d];
    }
    values.push_back(static_cast<T>(fed_value(graph, graph.tensors[block.tensor], step, index)));
  }
  executor.feed(block, values.data());
}

template<class T>
std::vector<double> downloaded(const Executor& executor, const device::TensorView& view, const Box& box) {
  std::vector<T> values(static_cast<std::size_t>(volume(box)));
  if (!values.empty()) device::download(executor.context().exec, view, box, values.data());
  return {values.begin(), values.end()};
}

} // namespace

void feed(const graph::Graph& graph, Executor& executor, std::int64_t step) {
  for (const Block& block : executor.fed()) {
    if (block.view.dtype == DType::f64)
      feed_block<double>(executor, graph, block, step);
    else if (block.view.dtype == DType::f32)
      feed_block<float>(executor, graph, block, step);
    else
      feed_block<std::int32_t>(executor, graph, block, step);
  }
}

std::vector<double> values_of(const Executor& executor, const device::TensorView& view, const Box& box) {
  return view.dtype == DType::f64 ? downloaded<double>(executor, view, box) : downloaded<float>(executor, view, box);
}

double error_of(const std::vector<double>& got, const std::vector<double>& expected, const std::vector<double>& all) {
  double worst = 0, largest = 1e-3;
  for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
  for (double value : all) largest = std::max(largest, std::abs(value));
  return worst / largest;
}

void expect_same_state(const Executor& parallel, const Executor& serial, Tolerance tolerance, const std::string& what) {
  for (std::size_t p = 0; p < serial.persistent().size(); ++p) {
    const Block &mine = parallel.persistent()[p], &whole = serial.persistent()[p];
    ASSERT_EQ(mine.tensor, whole.tensor);
    const double error =
        error_of(values_of(parallel, mine.view, mine.view.box), values_of(serial, whole.view, mine.view.box),
                 values_of(serial, whole.view, whole.view.box));
    EXPECT_LE(error, tolerance.value) << what << ": tensor " << mine.tensor << " " << tiling::to_string(mine.tiling);
  }
}

} // namespace soybean::support
