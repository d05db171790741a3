#include "kernels/embedding.hpp"

#include "device/math.hpp"
#include "device/rows.hpp"
#include "kernels/layout.hpp"

#include <algorithm>
#include <limits>

namespace soybean::kernels {

namespace {

/// The rows of a table that a block has.
struct Table {
  std::int64_t first, rows, all, channels;
};
Table table_of(const TensorView& weight) {
  expect(weight, DType::f32);
  return {weight.box.offsets[0], weight.extent(0), weight.global[0], weight.extent(1)};
}

/// Throws Bug unless tokens and a block of sequences have the same positions, and sequences and table the same
/// channels.
void expect_fits(const TensorView& tokens, const TensorView& sequences, const Table& table) {
  expect(tokens, DType::i32);
  expect(sequences, DType::f32);
  const ChannelRows rows = channel_rows(sequences);
  ensure(tokens.size() == rows.rows && rows.channels == table.channels, "tokens, sequences and table do not fit");
}

} // namespace

void run_embedding(const Exec& exec, const Call& call) {
  const Table table = table_of(call.inputs[1]);
  expect_fits(call.inputs[0], call.outputs[0], table);
  const auto* tokens = call.inputs[0].as<const std::int32_t>();
  const auto* weight = call.inputs[1].as<const float>();
  auto* y = call.outputs[0].as<float>();
  device::rows_for(
      exec, call.inputs[0].size(), table.channels, "soybean::embedding",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        const std::int64_t token = tokens[row], place = token - table.first;
        const float other = token >= 0 && token < table.all ? 0.0f : std::numeric_limits<float>::quiet_NaN();
        y[row * table.channels + c] = place >= 0 && place < table.rows ? weight[place * table.channels + c] : other;
      });
}

void run_embedding_grad(const Exec& exec, const Call& call) {
  const Table table = table_of(call.outputs[0]);
  expect_fits(call.inputs[1], call.inputs[0], table);
  const auto* dy = call.inputs[0].as<const float>();
  const auto* tokens = call.inputs[1].as<const std::int32_t>();
  auto* dweight = call.outputs[0].as<float>();
  const std::int64_t rows = call.inputs[1].size();
  device::flat_for(
      exec, table.rows * table.channels, "soybean::embedding_grad::clear",
      KOKKOS_LAMBDA(std::int64_t i) { dweight[i] = 0; });
  if (device::on_host(exec)) { // each thread some of the channels
    constexpr std::int64_t width = 64;
    device::item_for(
        exec, (table.channels + width - 1) / width, rows * width, "soybean::embedding_grad",
        KOKKOS_LAMBDA(std::int64_t part) {
          const std::int64_t begin = part * width;
          const std::int64_t end = device::math::min(begin + width, table.channels);
          for (std::int64_t row = 0; row < rows; ++row) {
            const std::int64_t place = tokens[row] - table.first;
            if (place < 0 || place >= table.rows) continue;
            float* to = dweight + place * table.channels;
            const float* from = dy + row * table.channels;
#pragma omp simd
            for (std::int64_t c = begin; c < end; ++c) to[c] += from[c];
          }
        });
    return;
  }
  constexpr std::int64_t buckets = 64; // of tokens: whoever has a token's bucket and a channel adds up all of it
  device::rows_for(
      exec, buckets, table.channels, "soybean::embedding_grad", KOKKOS_LAMBDA(std::int64_t bucket, std::int64_t c) {
        for (std::int64_t row = 0; row < rows; ++row) {
          const std::int64_t place = tokens[row] - table.first;
          if (place < 0 || place >= table.rows || place % buckets != bucket) continue;
          dweight[place * table.channels + c] += dy[row * table.channels + c];
        }
      });
}

void run_positional_embedding(const Exec& exec, const Call& call) {
  const TensorView &in = call.inputs[0], &out = call.outputs[0];
  const Table table = table_of(call.inputs[1]);
  expect(in, DType::f32);
  expect_alike(in, out);
  const auto [rows, channels] = channel_rows(in);
  const std::int64_t positions = std::max<std::int64_t>(1, in.extent(2)), first = in.box.offsets[2] - table.first;
  ensure(channels == table.channels && first >= 0 && first + in.extent(2) <= table.rows,
         "sequences and positions do not fit");
  const auto *x = in.as<const float>(), *weight = call.inputs[1].as<const float>();
  auto* y = out.as<float>();
  const std::int64_t width = channels; // structured bindings are not captured everywhere
  device::rows_for(
      exec, rows, width, "soybean::positional_embedding", KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        y[row * width + c] = x[row * width + c] + weight[(first + row % positions) * width + c];
      });
}

void run_positional_embedding_grad(const Exec& exec, const Call& call) {
  const TensorView& in = call.inputs[0];
  const Table table = table_of(call.outputs[0]);
  expect(in, DType::f32);
  ensure(channel_rows(in).channels == table.channels, "sequences and positions do not fit");
  const std::int64_t samples = in.extent(0), positions = in.extent(2), first = table.first - in.box.offsets[2];
  const std::int64_t channels = table.channels;
  const auto* dy = in.as<const float>();
  auto* dweight = call.outputs[0].as<float>();
  device::rows_for(
      exec, table.rows, channels, "soybean::positional_embedding_grad",
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        const std::int64_t position = first + row;
        float sum = 0;
        if (position >= 0 && position < positions)
          for (std::int64_t b = 0; b < samples; ++b) sum += dy[(b * positions + position) * channels + c];
        dweight[row * channels + c] = sum;
      });
}

} // namespace soybean::kernels
