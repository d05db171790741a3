// Layers that join, cut, reorder, pad and resize.
#include "base/error.hpp"
#include "frontend/layers.hpp"

#include <algorithm>
#include <utility>

namespace soybean::frontend {

using config::required;
using config::Table;
using graph::Graph;
using graph::TensorId;
using Inputs = std::vector<TensorId>;

Append read_identity(const Table&, const ModelOptions&) {
  return [](Graph&, const std::string&, const Inputs& inputs) { return inputs[0]; };
}

Append read_concat(const Table&, const ModelOptions&) {
  return [](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::concat_layer(graph, name, inputs);
  };
}

Append read_slice(const Table& table, const ModelOptions&) {
  table.known({"begin", "end"});
  const std::int64_t begin = table.integer("begin", required, {.low = 0});
  const std::int64_t end = table.integer("end", required, {.low = 1});
  if (end <= begin) table.reject("end", "more than begin", fmt::format("begin is {}", begin));
  return [begin, end](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::slice_layer(graph, name, inputs[0], begin, end);
  };
}

Append read_reshape(const Table& table, const ModelOptions&) {
  const Shape shape = table.integers("shape", required, {.low = -1});
  const bool good = (shape.size() == 1 || shape.size() == 3) && std::count(shape.begin(), shape.end(), 0) == 0 &&
                    std::count(shape.begin(), shape.end(), -1) <= 1;
  if (!good) table.reject("shape", "[features] or [channels, height, width], one of them -1 at most");
  return [shape](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::reshape_layer(graph, name, inputs[0], shape);
  };
}

Append read_permute(const Table& table, const ModelOptions&) {
  const Shape dims = table.integers("dims", required);
  Shape sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != Shape{0, 1, 2, 3} || dims[0] != 0)
    table.reject("dims", "0 (the batch), then 1, 2 and 3 (channels, height, width) in any order");
  return [dims](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::permute_layer(graph, name, inputs[0], dims);
  };
}

Append read_transpose(const Table& table, const ModelOptions&) {
  table.known({"dim0", "dim1"});
  const std::int64_t a = table.integer("dim0", required, {.low = 1, .high = 3});
  const std::int64_t b = table.integer("dim1", required, {.low = 1, .high = 3});
  if (a == b) table.reject("dim1", "another dim than dim0");
  Shape dims{0, 1, 2, 3};
  std::swap(dims[static_cast<std::size_t>(a)], dims[static_cast<std::size_t>(b)]);
  return [dims](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::permute_layer(graph, name, inputs[0], dims);
  };
}

Append read_pad(const Table& table, const ModelOptions&) {
  const ops::Edges padding = table.edges("padding", required, {.low = 0});
  return [padding](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::pad_layer(graph, name, inputs[0], padding);
  };
}

Append read_upsample(const Table& table, const ModelOptions&) {
  table.known({"scale_factor", "size", "mode", "align_corners"});
  ops::UpsampleOptions options;
  if (table.has("size") && table.has("scale_factor"))
    table.reject("size", "either size or scale_factor", "remove one of them");
  if (table.has("size"))
    options.size = table.pair("size", required, {.low = 1});
  else
    options.scale = table.pair("scale_factor", required, {.low = 1});
  const std::string mode = table.word("mode", "nearest", {.now = {"nearest", "bilinear"}, .later = {"bicubic"}});
  options.bilinear = mode == "bilinear";
  options.align_corners = table.boolean("align_corners", false);
  if (options.align_corners && !options.bilinear)
    table.reject("align_corners", "it with mode = \"bilinear\" alone", "the nearest pixel has no corners to align");
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::upsample_layer(graph, name, inputs[0], options);
  };
}

} // namespace soybean::frontend
