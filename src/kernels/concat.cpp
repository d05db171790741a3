#include "kernels/concat.hpp"

#include "kernels/layout.hpp"
#include "kernels/strided.hpp"

#include <algorithm>

namespace soybean::kernels {

namespace {

/// Copies all of a part, whose dim 1 begins at `begin` of the whole's, into the whole or (`out`) out of it.
void copy_part(const Exec& exec, const char* label, const TensorView& part, const TensorView& whole, std::int64_t begin,
               bool out) {
  expect(part, DType::f32);
  expect(whole, DType::f32);
  ensure(part.extent(0) == whole.extent(0) && begin + part.extent(1) <= whole.extent(1), "parts of other samples");
  if (part.size() == 0) return; // blocks of images may have no rows: then spatial says nothing
  const bool image = part.box.extents.size() == 4;
  const std::int64_t positions = std::max(part.spatial, whole.spatial);
  const std::int64_t channels = image ? part.extent(1) : part.extent(1) / positions;
  const FeatureStrides inside = feature_strides(part, positions), around = feature_strides(whole, positions);
  const std::int64_t offset =
      (image ? begin : begin / positions) * around.channel + (image ? 0 : begin % positions * around.position);
  ensure(whole.spatial == 1 || image || begin % positions == 0, "a part that begins within a channel");
  const auto axis = [out](std::int64_t extent, std::int64_t mine, std::int64_t theirs) {
    return out ? StridedAxis{extent, theirs, mine} : StridedAxis{extent, mine, theirs};
  };
  const std::vector<StridedAxis> axes{axis(part.extent(0), inside.batch, around.batch),
                                      axis(channels, inside.channel, around.channel),
                                      axis(positions, inside.position, around.position)};
  if (out)
    copy_strided(exec, label, axes, whole.as<const float>() + offset, part.as<float>());
  else
    copy_strided(exec, label, axes, part.as<const float>(), whole.as<float>() + offset);
}

} // namespace

void run_concat(const Exec& exec, const Call& call) {
  std::int64_t begin = 0;
  for (const TensorView& part : call.inputs) {
    copy_part(exec, "soybean::concat", part, call.outputs[0], begin, false);
    begin += part.extent(1);
  }
}

void run_slice(const Exec& exec, const Call& call) {
  copy_part(exec, "soybean::slice", call.outputs[0], call.inputs[0], call.node.attributes.integer("begin"), true);
}

void run_slice_grad(const Exec& exec, const Call& call) {
  const TensorView& dx = call.outputs[0];
  fill_zeros(exec, "soybean::slice_grad::clear", dx.size(), dx.as<float>());
  copy_part(exec, "soybean::slice_grad", call.inputs[0], dx, call.node.attributes.integer("begin"), false);
}

} // namespace soybean::kernels
