#include "train/feed.hpp"

#include "base/error.hpp"

namespace soybean::train {

using graph::Role;

std::vector<data::Part> fed_parts(const graph::Graph& graph, const runtime::Executor& executor) {
  std::vector<data::Part> parts;
  for (const runtime::Block& block : executor.fed()) {
    const Role role = graph.tensors[block.tensor].role;
    if (role == Role::hyper) continue;
    const data::Content content = role == Role::input   ? data::Content::inputs
                                  : role == Role::label ? data::Content::labels
                                                        : data::Content::weights;
    ensure(role == Role::input || role == Role::label || role == Role::sample_weight, "unexpected fed tensor");
    parts.push_back({content, block.view.box, block.view.dtype});
  }
  return parts;
}

void feed(const graph::Graph& graph, runtime::Executor& executor, const data::Batch& batch) {
  std::size_t part = 0;
  for (const runtime::Block& block : executor.fed()) {
    if (graph.tensors[block.tensor].role == Role::hyper) continue;
    executor.feed(block, batch.parts[part++].data());
  }
}

void feed_hyper(const graph::Graph& graph, runtime::Executor& executor, double learning_rate, std::int64_t step) {
  const double values[2] = {learning_rate, static_cast<double>(step)};
  for (const runtime::Block& block : executor.fed())
    if (graph.tensors[block.tensor].role == Role::hyper) executor.feed(block, values);
}

} // namespace soybean::train
