#include "support/conv_cases.hpp"

#include <array>

namespace soybean::support {

Tensors<double> naive(const Conv& c, const Tensors<double>& in) {
  Tensors<double> out{std::vector<double>(in.x.size()), std::vector<double>(in.w.size()),
                      std::vector<double>(in.y.size())};
  const std::int64_t oh = c.out_height(), ow = c.out_width(), cg = c.in_channels / c.groups,
                     og = c.out_channels / c.groups;
  for (std::int64_t b = 0; b < c.batch; ++b)
    for (std::int64_t o = 0; o < c.out_channels; ++o)
      for (std::int64_t i = 0; i < oh; ++i)
        for (std::int64_t j = 0; j < ow; ++j)
          for (std::int64_t k = 0; k < cg; ++k)
            for (std::int64_t r = 0; r < c.kernel_h; ++r)
              for (std::int64_t s = 0; s < c.kernel_w; ++s) {
                const std::int64_t h = i * c.stride_h - c.padding_h + r * c.dilation_h;
                const std::int64_t w = j * c.stride_w - c.padding_w + s * c.dilation_w;
                if (h < 0 || h >= c.height || w < 0 || w >= c.width) continue;
                const std::int64_t channel = o / og * cg + k;
                const std::int64_t at_x = ((b * c.height + h) * c.width + w) * c.in_channels + channel;
                const std::int64_t at_w = ((o * cg + k) * c.kernel_h + r) * c.kernel_w + s;
                const std::int64_t at_y = ((b * oh + i) * ow + j) * c.out_channels + o;
                out.y[at_y] += in.x[at_x] * in.w[at_w];
                out.x[at_x] += in.y[at_y] * in.w[at_w];
                out.w[at_w] += in.y[at_y] * in.x[at_x];
              }
  return out;
}

std::vector<double> naive_product(const Matmul& s, const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<double> c(static_cast<std::size_t>(s.m * s.n));
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j)
      for (std::int64_t k = 0; k < s.k; ++k)
        c[i * s.n + j] += double(a[s.a_transposed ? k * s.m + i : i * s.k + k]) *
                          double(b[s.b_transposed ? j * s.k + k : k * s.n + j]);
  return c;
}

Conv random_conv(std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (;;) {
    Conv c{.batch = pick(1, 4),
           .groups = pick(0, 2) ? 1 : pick(2, 5),
           .height = pick(1, 13),
           .width = pick(1, 13),
           .kernel_h = pick(1, 5),
           .kernel_w = pick(1, 5),
           .stride_h = pick(1, 3),
           .stride_w = pick(1, 3),
           .padding_h = pick(0, 2),
           .padding_w = pick(0, 2),
           .dilation_h = pick(1, 2),
           .dilation_w = pick(1, 2)};
    c.in_channels = c.groups * (pick(0, 3) ? pick(1, 67 / c.groups) : 1);
    c.out_channels = c.groups * pick(1, 67 / c.groups);
    const bool fits = c.height + 2 * c.padding_h > c.dilation_h * (c.kernel_h - 1) &&
                      c.width + 2 * c.padding_w > c.dilation_w * (c.kernel_w - 1) && c.padding_h < c.kernel_h &&
                      c.padding_w < c.kernel_w;
    if (fits && c.output_size() * c.weight_size() / c.out_channels < 2'000'000) return c;
  }
}

std::vector<Conv> network_convs() {
  return {
      {.batch = 2,
       .in_channels = 3,
       .out_channels = 64,
       .height = 32,
       .width = 32,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 2,
       .in_channels = 64,
       .out_channels = 64,
       .height = 28,
       .width = 28,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 1,
       .in_channels = 3,
       .out_channels = 64,
       .height = 63,
       .width = 63,
       .kernel_h = 11,
       .kernel_w = 11,
       .stride_h = 4,
       .stride_w = 4,
       .padding_h = 2,
       .padding_w = 2},
      {.batch = 2,
       .in_channels = 64,
       .out_channels = 192,
       .height = 13,
       .width = 13,
       .kernel_h = 5,
       .kernel_w = 5,
       .padding_h = 2,
       .padding_w = 2},
      {.batch = 2, .in_channels = 64, .out_channels = 128, .height = 14, .width = 14, .stride_h = 2, .stride_w = 2},
      {.batch = 2, .in_channels = 96, .out_channels = 32, .height = 14, .width = 14},
      {.batch = 2,
       .in_channels = 32,
       .out_channels = 32,
       .groups = 32,
       .height = 14,
       .width = 14,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 2,
       .in_channels = 32,
       .out_channels = 64,
       .groups = 4,
       .height = 14,
       .width = 14,
       .kernel_h = 3,
       .kernel_w = 3,
       .stride_h = 2,
       .stride_w = 2,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 2,
       .in_channels = 16,
       .out_channels = 24,
       .height = 16,
       .width = 16,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 2,
       .padding_w = 2,
       .dilation_h = 2,
       .dilation_w = 2},
      {.batch = 3, .in_channels = 16, .out_channels = 40, .height = 6, .width = 6, .kernel_h = 6, .kernel_w = 6},
      {.batch = 5,
       .in_channels = 1,
       .out_channels = 16,
       .height = 8,
       .width = 8,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 2,
       .in_channels = 37,
       .out_channels = 53,
       .height = 11,
       .width = 7,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
  };
}

std::vector<Conv> empty_convs() {
  const Conv full{
      .batch = 2, .in_channels = 4, .out_channels = 6, .height = 5, .width = 5, .kernel_h = 3, .kernel_w = 3};
  Conv no_batch = full, no_input = full, no_output = full;
  no_batch.batch = no_input.in_channels = no_output.out_channels = 0;
  return {no_batch, no_input, no_output};
}

std::vector<Dense> dense_layers() {
  return {{1, 1, 1},      {1, 67, 3},      {7, 13, 10},  {32, 84, 10}, {5, 3 * 49, 31, 49},
          {64, 300, 257}, {17, 1031, 129}, {3, 9, 1000}, {129, 5, 65}};
}

std::vector<Matmul> products() {
  std::vector<Matmul> shapes;
  for (bool a_transposed : {false, true})
    for (bool b_transposed : {false, true})
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{23, 41, 67}, {1, 9, 300}})
        shapes.push_back({m, n, k, a_transposed, b_transposed});
  return shapes;
}

} // namespace soybean::support
