// Layers that join, cut, reorder, pad and resize.
#include "base/error.hpp"
#include "ops/building.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace soybean::ops {

using graph::Graph;
using graph::TensorId;

TensorId concat_layer(Graph& graph, const std::string& name, const std::vector<TensorId>& parts) {
  return single(graph, name, "concat", {}, parts);
}

TensorId slice_layer(Graph& graph, const std::string& name, TensorId x, std::int64_t begin, std::int64_t end) {
  if (begin >= end) fail("{}: range, got channels {} to {} expected at least one", where(name, "slice"), begin, end);
  return single(graph, name, "slice", {{"begin", begin}, {"size", end - begin}}, {x});
}

TensorId reshape_layer(Graph& graph, const std::string& name, TensorId x, Shape sample) {
  const Shape shape = graph.tensors[x].shape;
  const std::int64_t elements = volume(shape) / shape[0];
  const auto rest = std::find(sample.begin(), sample.end(), -1);
  if (rest != sample.end()) {
    *rest = 1;
    const std::int64_t others = volume(sample);
    if (elements % others != 0)
      fail("{}: shape, got {} elements in the input expected a multiple of {} for the size that is -1",
           where(name, "reshape"), elements, others);
    *rest = elements / others;
  }
  if (sample.size() == 1 && shape.size() == 4 && sample[0] == elements) return flatten_layer(graph, name, x); // free
  return single(graph, name, "reshape", {{"tail", sample}, {"spatial", std::int64_t{1}}}, {x});
}

TensorId permute_layer(Graph& graph, const std::string& name, TensorId x, const Shape& dims) {
  return single(graph, name, "permute", {{"dims", dims}}, {x});
}

TensorId pad_layer(Graph& graph, const std::string& name, TensorId x, const Edges& padding) {
  return single(graph, name, "pad", {{"padding", Shape(padding.begin(), padding.end())}}, {x});
}

TensorId upsample_layer(Graph& graph, const std::string& name, TensorId x, const UpsampleOptions& options) {
  ensure(options.size.has_value() != options.scale.has_value(), "upsample: either a size or a scale");
  const Shape image = graph.tensors[x].shape;
  Shape size;
  if (options.size) size = shape_of(*options.size);
  if (options.scale) size = shape_of(*options.scale);
  for (std::size_t d = 0; d < 2 && options.scale && image.size() == 4; ++d) size[d] *= image[2 + d];
  return single(graph, name, "upsample",
                {{"size", size},
                 {"bilinear", std::int64_t{options.bilinear}},
                 {"align_corners", std::int64_t{options.align_corners}}},
                {x});
}

} // namespace soybean::ops
