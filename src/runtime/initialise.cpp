#include "runtime/initialise.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "device/pack.hpp"

#include <algorithm>
#include <cstddef>

namespace soybean::runtime {
namespace {

constexpr std::int64_t slab_elements = std::int64_t{1} << 20; // drawn at a time, then brought into place

double draw(const graph::Initializer& init, const philox::Stream& stream, std::int64_t index) {
  const auto i = static_cast<std::uint64_t>(index);
  switch (init.kind) {
  case graph::Init::zeros:
    return 0;
  case graph::Init::uniform:
    return (2 * philox::uniform(stream, i) - 1) * init.scale;
  case graph::Init::normal:
    return philox::normal(stream, i) * init.scale;
  case graph::Init::constant:
    return init.scale;
  }
  return 0;
}

/// Global logical index of element k (row-major within the box) of a box.
std::int64_t global_index(const Box& box, const Shape& global, std::int64_t k) {
  std::int64_t index = 0, stride = 1;
  for (std::size_t d = global.size(); d-- > 0;) {
    index += (box.offsets[d] + k % box.extents[d]) * stride;
    k /= box.extents[d];
    stride *= global[d];
  }
  return index;
}

template<class T>
void fill(const device::Exec& exec, const graph::Tensor& tensor, const device::TensorView& view, std::uint64_t seed) {
  const philox::Stream stream{seed, hash_text(tensor.name), 0};
  const bool zeros = tensor.init.kind == graph::Init::zeros;
  const std::int64_t total = view.size();
  if (total == 0) return;
  const std::int64_t rows = view.box.extents.empty() ? 1 : view.box.extents[0];
  const std::int64_t step = std::clamp<std::int64_t>(slab_elements / (total / rows), 1, rows);
  std::vector<T> values(step * (total / rows));
  for (std::int64_t row = 0; row < rows; row += step) {
    Box slab = view.box;
    if (!slab.extents.empty()) {
      slab.offsets[0] += row;
      slab.extents[0] = std::min(step, rows - row);
    }
    const std::int64_t count = volume(slab);
    if (!zeros) {
#pragma omp parallel for num_threads(exec.threads()) schedule(static)
      for (std::int64_t k = 0; k < count; ++k)
        values[k] = static_cast<T>(draw(tensor.init, stream, global_index(slab, view.global, k)));
    }
    device::upload(exec, values.data(), view, slab);
  }
}

} // namespace

void initialise_parameters(const graph::Graph& graph, const Executor& executor, std::uint64_t seed) {
  const device::Exec& exec = executor.context().exec;
  for (const Block& block : executor.persistent()) {
    const graph::Tensor& tensor = graph.tensors[block.tensor];
    switch (tensor.dtype) {
    case DType::f32:
      fill<float>(exec, tensor, block.view, seed);
      break;
    case DType::f64:
      fill<double>(exec, tensor, block.view, seed);
      break;
    case DType::i32:
      ensure(false, "initialise: " + tensor.name + " is not a floating-point tensor");
      break;
    }
  }
  exec.fence();
}

} // namespace soybean::runtime
