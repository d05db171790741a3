// Linked against CUDA's own libraries: says which accelerators there are and, where there is one, runs convolutions,
// matrix products, poolings, softmaxes, a recording and copies on each and compares them with plain loops. Without a
// driver it says so and succeeds: that everything links and loads is then all it shows.
#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/devices.hpp"
#include "device/dnn.hpp"
#include "device/stream.hpp"
#include "support/conv_cases.hpp"
#include "support/device_floats.hpp"
#include "support/layer_cases.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using device::Arena;
using device::Exec;
using Floats = support::DeviceFloats;

/// One line; false when the error is too large.
bool report(const std::string& what, double error, double tolerance) {
  fmt::print("  {:<60} error {:.1e} {}\n", what, error, error <= tolerance ? "ok" : "WRONG");
  return error <= tolerance;
}

/// The forward pass into memory full of NaN, with a bias that the library or the call after it adds; exact: without.
bool check_bias(const Exec& exec, device::Conv c, const support::Tensors<float>& in, std::vector<double> exact,
                double tolerance) {
  const std::vector<float> bias = support::draw<float>(c.out_channels, 9);
  for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += bias[i % bias.size()];
  c.bias = true;
  const Floats x(exec, in.x), w(exec, in.w), shift(exec, bias),
      y(exec, std::vector<float>(exact.size(), std::numeric_limits<float>::quiet_NaN()));
  const Arena scratch(exec, device::conv_scratch_bytes(exec, c, device::ConvPass::forward));
  device::conv_forward(exec, c, x.data(), w.data(), y.data(), scratch.data(), shift.data());
  const bool fused = device::conv_takes_bias(exec, c, false);
  return report(support::text(c) + (fused ? " with its bias" : " with a bias after it"),
                support::relative_error(y.values(), exact), tolerance);
}

bool check_convolution(const Exec& exec, const device::Conv& c, double tolerance) {
  using device::ConvPass;
  const auto in = support::random_tensors<float>(c);
  const auto exact = support::naive(c, support::random_tensors<double>(c));
  const Floats x(exec, in.x), w(exec, in.w), y(exec, in.y);
  bool right = true;
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
    const Arena scratch(exec, device::conv_scratch_bytes(exec, c, pass));
    const auto& expected = pass == ConvPass::forward ? exact.y : pass == ConvPass::backward_data ? exact.x : exact.w;
    const Floats out(exec, std::vector<float>(expected.size(), 7));
    if (pass == ConvPass::forward) device::conv_forward(exec, c, x.data(), w.data(), out.data(), scratch.data());
    if (pass == ConvPass::backward_data)
      device::conv_backward_data(exec, c, y.data(), w.data(), out.data(), scratch.data());
    if (pass == ConvPass::backward_weights)
      device::conv_backward_weights(exec, c, y.data(), x.data(), out.data(), scratch.data());
    const std::string what = fmt::format("{} {}", support::text(c), device::conv_implementation(exec, c, pass));
    right = report(what, support::relative_error(out.values(), expected), tolerance) && right;
  }
  return check_bias(exec, c, in, exact.y, tolerance) && right;
}

/// One line, that the library does not offer it.
bool refused(const std::string& what) {
  fmt::print("  {:<60} not offered, a kernel does it\n", what);
  return true;
}

bool check_pool(const Exec& exec, const device::Pool& p) {
  std::vector<float> x = support::draw<float>(p.input_size(), 1);
  const Floats in(exec, x), out(exec, std::vector<float>(static_cast<std::size_t>(p.output_size()), 7));
  if (!device::pool(exec, p, in.data(), out.data())) return refused(support::text(p));
  const double error = support::relative_error(out.values(), support::naive(p, x));
  x[0] = std::numeric_limits<float>::quiet_NaN(); // which the first window holds
  device::copy_from_host(exec, in.data(), x.data(), in.bytes());
  device::pool(exec, p, in.data(), out.data());
  return report(support::text(p), std::isnan(out.values()[0]) ? error : 1, p.kind == device::PoolKind::max ? 0 : 1e-6);
}

/// Both directions, in place.
bool check_softmax(const Exec& exec, const device::Softmax& s) {
  const std::vector<float> x = support::draw<float>(s.rows * s.width, 1),
                           dy = support::draw<float>(s.rows * s.width, 2);
  const support::SoftmaxResults exact = support::naive(s, x, dy);
  const Floats y(exec, x), dx(exec, dy);
  if (!device::softmax(exec, s, y.data(), y.data())) return refused(support::text(s));
  const bool right = report(support::text(s), support::relative_error(y.values(), exact.y), 1e-5);
  if (!device::softmax_gradient(exec, s, dx.data(), y.data(), dx.data()))
    return refused(support::text(s) + ", gradient");
  return report(support::text(s) + ", gradient", support::relative_error(dx.values(), exact.dx), 1e-5) && right;
}

bool check_product(const Exec& exec, const device::Matmul& s, double tolerance) {
  const auto a = support::draw<float>(s.m * s.k, 4), b = support::draw<float>(s.k * s.n, 5);
  const Floats da(exec, a), db(exec, b), dc(exec, std::vector<float>(static_cast<std::size_t>(s.m * s.n)));
  const Arena scratch(exec, device::matmul_scratch_bytes(exec, s));
  device::Recording recording; // what runs here once by itself runs there again
  device::matmul(exec, s, da.data(), db.data(), dc.data(), scratch.data());
  exec.fence();
  if (recording.begin(exec.stream())) {
    exec.stream().zero(dc.data(), dc.bytes());
    device::matmul(exec, s, da.data(), db.data(), dc.data(), scratch.data());
    recording.end(exec.stream());
    recording.launch(exec.stream());
  }
  const std::string what = fmt::format("product m {} n {} k {}{}{}", s.m, s.n, s.k,
                                       s.a_transposed ? ", a stored k m" : "", s.b_transposed ? ", b stored n k" : "");
  return report(what, support::relative_error(dc.values(), support::naive_product(s, a, b)), tolerance);
}

bool check_device(int device) {
  const device::DeviceFacts facts = device::device_facts(device);
  fmt::print("{}: {} {}, compute capability {}.{}, {:.1f} of {:.1f} GiB free{}\n", device, facts.name, facts.id,
             facts.major, facts.minor, static_cast<double>(facts.free) / (1 << 30),
             static_cast<double>(facts.memory) / (1 << 30),
             facts.supported ? "" : ", this program has no code for it (only " + facts.architectures + ")");
  bool right = true;
  const Exec plain(1, device);
  for (const device::Pool& p : support::pools()) right = check_pool(plain, p) && right;
  for (const device::Softmax& s : support::softmaxes()) right = check_softmax(plain, s) && right;
  for (const device::Math math : {device::Math::fp32, device::Math::tf32}) {
    fmt::print(" {}\n", math == device::Math::fp32 ? "fp32" : "tf32");
    const double tolerance = math == device::Math::fp32 ? 1e-5 : 2e-3;
    const Exec exec(1, device, math);
    for (const device::Conv& c : support::network_convs()) right = check_convolution(exec, c, tolerance) && right;
    for (const bool a : {false, true})
      for (const bool b : {false, true}) right = check_product(exec, {123, 64, 257, a, b}, tolerance) && right;
  }
  return right;
}

} // namespace

int main() {
  try {
    fmt::print("{}: {}\n", device::accelerator(), device::accelerator_versions());
    const int count = device::device_count();
    if (count == 0) fmt::print("there is no driver or no accelerator: nothing was run\n");
    bool right = true;
    for (int device = 0; device < count; ++device) right = check_device(device) && right;
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "cuda_check: {}\n", error.what());
    return 3;
  }
}
