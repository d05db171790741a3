// Softmax layers, f32; sums in double. n values: forward reads 4n bytes three times (twice from cache) and writes 4n,
// with one or two exponentials each; the gradients read 8n twice and write 4n. On accelerators the vendor library does
// them where it can, with sums in float.
#include "kernels/softmax.hpp"

#include "device/dnn.hpp"
#include "device/math.hpp"
#include "device/teams.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

SoftmaxRows softmax_rows(const TensorView& x) {
  const Shape& e = x.box.extents;
  ensure(e.size() == 2 || e.size() == 4, "softmax needs images or features");
  ensure(e[1] == x.global[1], "softmax needs all channels of its rows");
  if (e.size() == 2) return {e[0], e[1]}; // of a flattened image in another order, which does not matter
  const ChannelRows rows = channel_rows(x);
  return {rows.rows, rows.channels};
}

namespace {

struct Softmax {
  static constexpr bool logarithm = false;
  std::int64_t width;
  const float* x;
  float* y;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float* from = x + row * width;
    float* to = y + row * width;
    const float most = team.max(width, [&](std::int64_t k) { return from[k]; });
    const double sum = team.sum(width, [&](std::int64_t k) {
      to[k] = device::math::exp(from[k] - most);
      return to[k];
    });
    const auto scale = static_cast<float>(1 / sum);
    team.each(width, [&](std::int64_t k) { to[k] *= scale; });
  }
};

struct LogSoftmax {
  static constexpr bool logarithm = true;
  std::int64_t width;
  const float* x;
  float* y;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float* from = x + row * width;
    float* to = y + row * width;
    const float most = team.max(width, [&](std::int64_t k) { return from[k]; });
    const double sum = team.sum(width, [&](std::int64_t k) { return device::math::exp(from[k] - most); });
    const auto logarithm = static_cast<float>(device::math::log(sum));
    team.each(width, [&](std::int64_t k) { to[k] = (from[k] - most) - logarithm; });
  }
};

struct SoftmaxGrad {
  static constexpr bool logarithm = false;
  std::int64_t width;
  const float *dy, *y;
  float* dx;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float *above = dy + row * width, *share = y + row * width;
    float* to = dx + row * width;
    const auto mean = static_cast<float>(team.sum(width, [&](std::int64_t k) { return above[k] * share[k]; }));
    team.each(width, [&](std::int64_t k) { to[k] = share[k] * (above[k] - mean); });
  }
};

struct LogSoftmaxGrad {
  static constexpr bool logarithm = true;
  std::int64_t width;
  const float *dy, *y;
  float* dx;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const {
    const float *above = dy + row * width, *logarithm = y + row * width;
    float* to = dx + row * width;
    const auto sum = static_cast<float>(team.sum(width, [&](std::int64_t k) { return above[k]; }));
    team.each(width, [&](std::int64_t k) { to[k] = above[k] - device::math::exp(logarithm[k]) * sum; });
  }
};

template<class Kernel>
void forward(const Exec& exec, const char* label, const Call& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  expect(x, DType::f32);
  expect_alike(x, y);
  const SoftmaxRows r = softmax_rows(x);
  if (device::softmax(exec, {r.rows, r.width, Kernel::logarithm}, x.as<const float>(), y.as<float>())) return;
  device::teams_for(exec, r.rows, 16 * r.width, label, Kernel{r.width, x.as<const float>(), y.as<float>()});
}

template<class Kernel>
void backward(const Exec& exec, const char* label, const Call& call) {
  const TensorView &dy = call.inputs[0], &y = call.inputs[1], &dx = call.outputs[0];
  expect(dy, DType::f32);
  expect_alike(dy, y);
  expect_alike(dy, dx);
  const SoftmaxRows r = softmax_rows(dy);
  if (device::softmax_gradient(exec, {r.rows, r.width, Kernel::logarithm}, dy.as<const float>(), y.as<const float>(),
                               dx.as<float>()))
    return;
  device::teams_for(exec, r.rows, 4 * r.width, label,
                    Kernel{r.width, dy.as<const float>(), y.as<const float>(), dx.as<float>()});
}

} // namespace

void run_softmax(const Exec& exec, const Call& call) {
  forward<Softmax>(exec, "soybean::softmax", call);
}
void run_softmax_grad(const Exec& exec, const Call& call) {
  backward<SoftmaxGrad>(exec, "soybean::softmax_grad", call);
}
void run_log_softmax(const Exec& exec, const Call& call) {
  forward<LogSoftmax>(exec, "soybean::log_softmax", call);
}
void run_log_softmax_grad(const Exec& exec, const Call& call) {
  backward<LogSoftmaxGrad>(exec, "soybean::log_softmax_grad", call);
}

} // namespace soybean::kernels
