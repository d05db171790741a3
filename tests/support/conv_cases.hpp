#pragma once
// Convolutions and matrix products with their definitions as plain loops, for the tests of everything that computes
// them: kernels, and the vendor layer of accelerators.
#include "device/dnn.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace soybean::support {

using device::Conv;
using device::Matmul;

inline std::string text(const Conv& c) {
  return fmt::format("b{} c{} o{} g{} {}x{} k{}x{} s{}x{} p{}x{} d{}x{}", c.batch, c.in_channels, c.out_channels,
                     c.groups, c.height, c.width, c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.padding_h,
                     c.padding_w, c.dilation_h, c.dilation_w);
}

template<class T>
std::vector<T> draw(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1); // floats, so that float and double runs read the same numbers
  std::vector<T> out(static_cast<std::size_t>(n));
  for (T& x : out) x = T(value(random));
  return out;
}

/// x, w, y of a convolution or a dense layer, or their gradients: whichever a pass does not read it writes.
template<class T>
struct Tensors {
  std::vector<T> x, w, y;
};

template<class T>
Tensors<T> random_tensors(const Conv& c) {
  return {draw<T>(c.input_size(), 1), draw<T>(c.weight_size(), 2), draw<T>(c.output_size(), 3)};
}

/// |a − b| / |b| in the Euclidean norm; |a − b| where b is zero.
template<class A, class B>
double relative_error(const std::vector<A>& a, const std::vector<B>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    norm += double(b[i]) * double(b[i]);
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

/// The definition, in logical terms: no blocks, no order of loops to get wrong.
Tensors<double> naive(const Conv& c, const Tensors<double>& in);
std::vector<double> naive_product(const Matmul& shape, const std::vector<float>& a, const std::vector<float>& b);

/// Small convolutions with everything drawn, odd and prime extents included.
Conv random_conv(std::mt19937& random);
/// Convolutions as networks have them.
std::vector<Conv> network_convs();
/// Convolutions without images, in-channels or out-channels.
std::vector<Conv> empty_convs();

/// Extents of dense layers: y [batch, out] = x [batch, in] wᵀ, w [out, in].
struct Dense {
  std::int64_t batch, in, out;
  std::int64_t spatial = 1; ///< positions that `in` flattens
};
std::vector<Dense> dense_layers();
/// Products in every transposition.
std::vector<Matmul> products();

} // namespace soybean::support
