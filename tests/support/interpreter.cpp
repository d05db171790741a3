#include "support/interpreter.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "device/arena.hpp"
#include "device/memory.hpp"
#include "kernels/layout.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>

namespace soybean::support {

using device::TensorView;
using graph::Graph;
using graph::Node;
using graph::Role;
using graph::Tensor;

namespace {

void advance(Shape& position, const Shape& extents) {
  for (int d = static_cast<int>(extents.size()) - 1; d >= 0 && ++position[d] == extents[d]; --d) position[d] = 0;
}

void* allocate_bytes(std::int64_t bytes) {
  void* memory = std::aligned_alloc(64, static_cast<std::size_t>((bytes + 64) / 64 * 64));
  ensure(memory != nullptr, "out of memory");
  return memory;
}

} // namespace

void Block::Free::operator()(void* memory) const noexcept {
  std::free(memory);
}

Block::Block(const Tensor& tensor, Box box) {
  const std::int64_t spatial = device::block_spatial(box.extents, tensor.spatial);
  view_ = {.dtype = tensor.dtype, .box = std::move(box), .global = tensor.shape, .spatial = spatial};
  memory_.reset(allocate_bytes(size() * size_of(tensor.dtype)));
  view_.data = memory_.get();
  for (std::int64_t i = 0; i < size(); ++i)
    set(i, tensor.dtype == DType::i32 ? -1 : std::numeric_limits<double>::quiet_NaN());
}

double Block::get(std::int64_t i) const {
  if (view_.dtype == DType::f32) return view_.as<float>()[i];
  if (view_.dtype == DType::f64) return view_.as<double>()[i];
  return view_.as<std::int32_t>()[i];
}

void Block::set(std::int64_t i, double value) {
  if (view_.dtype == DType::f32)
    view_.as<float>()[i] = static_cast<float>(value);
  else if (view_.dtype == DType::f64)
    view_.as<double>()[i] = value;
  else
    view_.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
}

double Block::at(const Shape& position) const {
  return get(kernels::physical_offset(view_, position));
}

Block Block::copy() const {
  Block result;
  const std::int64_t bytes = size() * size_of(view_.dtype);
  result.view_ = view_;
  result.memory_.reset(allocate_bytes(bytes));
  result.view_.data = result.memory_.get();
  std::memcpy(result.view_.data, view_.data, static_cast<std::size_t>(bytes));
  return result;
}

std::vector<double> logical(const Block& block) {
  const Shape& extents = block.view().box.extents;
  std::vector<double> values;
  Shape position(extents.size(), 0);
  for (std::int64_t n = 0; n < block.size(); ++n, advance(position, extents)) values.push_back(block.at(position));
  return values;
}

void set_logical(Block& block, std::span<const double> values) {
  ensure(static_cast<std::int64_t>(values.size()) == block.size(), "another number of values");
  const Shape& extents = block.view().box.extents;
  Shape position(extents.size(), 0);
  for (double value : values) {
    block.set(kernels::physical_offset(block.view(), position), value);
    advance(position, extents);
  }
}

Block slice(const Tensor& tensor, const Block& block, const Box& box) {
  ensure(contains(block.view().box, box), "a slice outside its block");
  Block part(tensor, box);
  std::vector<double> values;
  Shape position(box.extents.size(), 0), from(box.extents.size());
  for (std::int64_t n = 0; n < part.size(); ++n, advance(position, box.extents)) {
    for (std::size_t d = 0; d < from.size(); ++d) from[d] = position[d] + box.offsets[d] - block.view().box.offsets[d];
    values.push_back(block.at(from));
  }
  set_logical(part, values);
  return part;
}

Values allocate(const Graph& graph) {
  Values values;
  for (const Tensor& tensor : graph.tensors) values.emplace_back(tensor, whole(tensor.shape));
  return values;
}

namespace {

double source_value(const Graph& graph, const Tensor& tensor, const philox::Stream& stream, std::int64_t i) {
  const double draw = philox::uniform(stream, static_cast<std::uint64_t>(i));
  if (tensor.role == Role::input && tensor.dtype == DType::i32)
    return std::floor(draw * static_cast<double>(graph.vocabulary));
  switch (tensor.role) {
  case Role::share: // some samples are not mixed
    return i == 0 ? 1 : static_cast<float>(draw);
  case Role::label:
  case Role::partner_label:
    return std::floor(draw * static_cast<double>(graph.tensors[graph.logits].shape[1]));
  case Role::sample_weight:
    return tensor.shape[0] > 1 && i == tensor.shape[0] - 1 ? 0 : 1 / static_cast<double>(tensor.shape[0]);
  case Role::hyper: // from the third on: bias corrections
    return i == 0 ? 0.1 : i == 1 ? 3 : 1 - 0.2 / static_cast<double>(i);
  default: // variances, which begin as a constant, and means of squares, above those of means, stay positive
    if (tensor.name.ends_with("_sq") || tensor.name.ends_with("square_avg")) return static_cast<float>(2 + draw);
    return static_cast<float>(tensor.init.kind == graph::Init::constant ? 0.5 + draw : 2 * draw - 1);
  }
}

} // namespace

void fill_sources(const Graph& graph, Values& values, std::uint64_t seed) {
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.producer != graph::none) continue;
    const philox::Stream stream{seed, hash_text(tensor.name), 0};
    std::vector<double> elements;
    elements.reserve(static_cast<std::size_t>(volume(tensor.shape)));
    for (std::int64_t i = 0; i < volume(tensor.shape); ++i) elements.push_back(source_value(graph, tensor, stream, i));
    set_logical(values[t], elements);
  }
}

namespace {

/// Copies of blocks in an accelerator's memory; blocks of one memory get one copy.
class Copies {
public:
  explicit Copies(const device::Exec& exec) : exec_(exec) {}
  TensorView bring(TensorView view) {
    const std::int64_t bytes = view.size() * size_of(view.dtype);
    const auto [copy, fresh] = copies_.try_emplace(view.data);
    if (fresh) {
      copy->second = device::Arena(exec_, bytes);
      device::copy_from_host(exec_, copy->second.data(), view.data, bytes);
    }
    view.data = copy->second.data();
    return view;
  }
  void bring_back(const TensorView& view) const {
    device::copy_to_host(exec_, view.data, copies_.at(view.data).data(), view.size() * size_of(view.dtype));
  }

private:
  const device::Exec& exec_;
  std::map<void*, device::Arena> copies_;
};

void run_on_device(const device::Exec& exec, const kernels::Kernel& kernel, kernels::Call call) {
  Copies copies(exec);
  std::vector<TensorView> inputs, outputs;
  for (const TensorView& view : call.inputs) inputs.push_back(copies.bring(view));
  for (const TensorView& view : call.outputs) outputs.push_back(copies.bring(view));
  const std::span<const TensorView> results = call.outputs;
  call.inputs = inputs;
  call.outputs = outputs;
  const device::Arena scratch(exec, kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(exec, call));
  call.scratch = scratch.data();
  kernel.run(exec, call);
  for (const TensorView& view : results) copies.bring_back(view);
}

} // namespace

void run_node(const device::Exec& exec, const Graph& graph, const Node& node, std::span<const TensorView> inputs,
              std::span<const TensorView> outputs, const NodeOptions& options) {
  const kernels::Kernel& kernel = kernels::find(node.op, graph.precision);
  kernels::Call call{.node = node, .inputs = inputs, .outputs = outputs, .training = options.training};
  if (exec.on_device()) return run_on_device(exec, kernel, call);
  const std::int64_t bytes = kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(exec, call);
  Tensor scratch{.name = "scratch", .shape = {(bytes + 7) / 8}, .dtype = DType::f64};
  const Block block(scratch, whole(scratch.shape));
  call.scratch = block.view().data;
  kernel.run(exec, call);
}

void run_serial(const device::Exec& exec, const Graph& graph, Values& values, Part part, const NodeOptions& options) {
  const std::vector<char> active = graph::active_nodes(graph, options.training);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!active[n] || (part == Part::forward && node.phase != graph::Phase::forward)) continue;
    std::vector<TensorView> inputs, outputs;
    for (graph::TensorId t : node.inputs) inputs.push_back(values[graph::operand(graph, t, options.training)].view());
    for (graph::TensorId t : node.outputs) outputs.push_back(values[t].view());
    run_node(exec, graph, node, inputs, outputs, options);
  }
}

void take_next(const Graph& graph, Values& values) {
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].next != graph::none) values[t] = values[graph.tensors[t].next].copy();
}

} // namespace soybean::support
