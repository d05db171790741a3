#include "train/feed.hpp"

#include "base/error.hpp"

namespace soybean::train {

using graph::Role;

namespace {

data::Content content_of(Role role) {
  switch (role) {
  case Role::input:
    return data::Content::inputs;
  case Role::label:
    return data::Content::labels;
  case Role::partner_label:
    return data::Content::partner_labels;
  case Role::share:
    return data::Content::shares;
  case Role::target:
    return data::Content::targets;
  case Role::sample_weight:
    return data::Content::weights;
  default:
    throw Bug("unexpected fed tensor");
  }
}

} // namespace

std::vector<data::Part> fed_parts(const graph::Graph& graph, const runtime::Executor& executor) {
  std::vector<data::Part> parts;
  for (const runtime::Block& block : executor.fed()) {
    const Role role = graph.tensors[block.tensor].role;
    if (role == Role::hyper) continue;
    Box rows = block.view.box;
    rows.offsets[0] += graph.tensors[block.tensor].first_row;
    parts.push_back({content_of(role), rows, block.view.dtype});
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

void feed_hyper(const graph::Graph& graph, runtime::Executor& executor, const StepScalars& scalars) {
  for (const runtime::Block& block : executor.fed()) {
    if (graph.tensors[block.tensor].role != Role::hyper) continue;
    ensure(block.view.size() <= static_cast<std::int64_t>(scalars.size()),
           "the graph reads more scalars than there are");
    executor.feed(block, scalars.data());
  }
}

} // namespace soybean::train
