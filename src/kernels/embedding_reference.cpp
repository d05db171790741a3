// Embeddings in f64 on the host, row by row.
#include "kernels/embedding.hpp"
#include "kernels/layout.hpp"

#include <fmt/format.h>

namespace soybean::kernels::reference {

namespace {

/// The place of a token's row in a block of the table; -1: not there.
std::int64_t place_of(std::int32_t token, const TensorView& table) {
  ensure(token >= 0 && token < table.global[0], fmt::format("token {} of {}", token, table.global[0]));
  const std::int64_t place = token - table.box.offsets[0];
  return place >= 0 && place < table.extent(0) ? place : -1;
}

} // namespace

void run_embedding(const Exec&, const Call& call) {
  const TensorView &tokens = call.inputs[0], &weight = call.inputs[1], &y = call.outputs[0];
  expect(weight, DType::f64);
  const std::int64_t channels = weight.extent(1);
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    const std::int64_t place = place_of(tokens.as<std::int32_t>()[row], weight);
    for (std::int64_t c = 0; c < channels; ++c)
      y.as<double>()[row * channels + c] = place < 0 ? 0 : weight.as<double>()[place * channels + c];
  }
}

void run_embedding_grad(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &tokens = call.inputs[1], &dweight = call.outputs[0];
  expect(dy, DType::f64);
  const std::int64_t channels = dweight.extent(1);
  for (std::int64_t i = 0; i < dweight.size(); ++i) dweight.as<double>()[i] = 0;
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    const std::int64_t place = place_of(tokens.as<std::int32_t>()[row], dweight);
    for (std::int64_t c = 0; c < channels && place >= 0; ++c)
      dweight.as<double>()[place * channels + c] += dy.as<double>()[row * channels + c];
  }
}

void run_positional_embedding(const Exec&, const Call& call) {
  const TensorView &x = call.inputs[0], &weight = call.inputs[1], &y = call.outputs[0];
  expect(x, DType::f64);
  expect_alike(x, y);
  const std::int64_t positions = x.extent(2), channels = x.extent(1), first = x.box.offsets[2] - weight.box.offsets[0];
  for (std::int64_t b = 0; b < x.extent(0); ++b)
    for (std::int64_t t = 0; t < positions; ++t)
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t i = (b * positions + t) * channels + c;
        y.as<double>()[i] = x.as<double>()[i] + weight.as<double>()[(first + t) * channels + c];
      }
}

void run_positional_embedding_grad(const Exec&, const Call& call) {
  const TensorView &dy = call.inputs[0], &dweight = call.outputs[0];
  expect(dy, DType::f64);
  const std::int64_t positions = dy.extent(2), channels = dy.extent(1);
  const std::int64_t first = dy.box.offsets[2] - dweight.box.offsets[0];
  for (std::int64_t i = 0; i < dweight.size(); ++i) dweight.as<double>()[i] = 0;
  for (std::int64_t b = 0; b < dy.extent(0); ++b)
    for (std::int64_t t = 0; t < positions; ++t)
      for (std::int64_t c = 0; c < channels && first + t >= 0 && first + t < dweight.extent(0); ++c)
        dweight.as<double>()[(first + t) * channels + c] += dy.as<double>()[(b * positions + t) * channels + c];
}

} // namespace soybean::kernels::reference
