#include "kernels/reshape.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/layout.hpp"
#include "kernels/strided.hpp"

namespace soybean::kernels {

namespace {

/// Samples stored [positions][channels], in logical order channel by channel.
struct Order {
  std::int64_t positions, channels;
};

Order order_of(const TensorView& view) {
  std::int64_t features = 1;
  for (std::size_t d = 1; d < view.box.extents.size(); ++d) features *= view.box.extents[d];
  return {view.spatial, features / view.spatial};
}

} // namespace

void run_reshape(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect(y, DType::f32);
  ensure(x.size() == y.size() && x.extent(0) == y.extent(0), call.node.name + ": blocks of different elements");
  const Order from = order_of(x), to = order_of(y);
  const float* source = x.as<const float>();
  float* result = y.as<float>();
  if (from.positions == to.positions) return copy(exec, "soybean::reshape", y.size(), source, result);
  const std::int64_t features = to.positions * to.channels;
  device::rows_for(
      exec, y.extent(0) * to.positions, to.channels, "soybean::reshape",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t channel) {
        const std::int64_t sample = row / to.positions, place = channel * to.positions + row % to.positions;
        const std::int64_t old_channel = place / from.positions, old_position = place - old_channel * from.positions;
        result[row * to.channels + channel] = source[sample * features + old_position * from.channels + old_channel];
      });
}

void run_permute(const Exec& exec, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect(y, DType::f32);
  const auto& dims = call.node.attributes.integers("dims");
  const auto strides = [](const TensorView& view) {
    channel_rows(view); // checks that it is an image
    const std::int64_t channels = view.extent(1), width = view.extent(3);
    return Shape{view.extent(2) * width * channels, 1, width * channels, channels};
  };
  const Shape from = strides(x), to = strides(y);
  std::vector<StridedAxis> axes;
  for (std::size_t d = 0; d < 4; ++d) {
    const auto old = static_cast<std::size_t>(dims[d]);
    ensure(y.box.extents[d] == x.box.extents[old], call.node.name + ": blocks of different elements");
    axes.push_back({y.box.extents[d], from[old], to[d]});
  }
  copy_strided(exec, "soybean::permute", std::move(axes), x.as<const float>(), y.as<float>());
}

} // namespace soybean::kernels
