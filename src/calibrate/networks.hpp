#pragma once
// Networks whose training steps have the kernels to be measured. Called by calibrate.cpp.
#include "graph/graph.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::calibrate {

struct NetworkSize {
  std::int64_t batch, image, channels, width;
};

/// Images of `image` × `image` pixels through convolutions, norms, pools, all activations, sums and joins of `channels`
/// and twice as many channels, then dense layers of `width` features: forward, backward and SGD.
graph::Graph network(const NetworkSize& size, DType precision);

/// Dense layers of so many features on a batch large enough that arithmetic limits them.
graph::Graph dense_network(std::int64_t batch, std::int64_t width, DType precision);

/// Two dense layers trained by an optimizer.
graph::Graph optimizer_network(const std::string& optimizer, std::int64_t width, DType precision);

/// A dense layer of few inputs and a relu of rows × 1024 elements, for sweeps over sizes.
graph::Graph relu_network(std::int64_t rows);

} // namespace soybean::calibrate
