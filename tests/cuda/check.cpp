// Linked against CUDA's own libraries: says which accelerators there are and, where there is one, runs a convolution, a
// matrix product, a recording and copies on each and compares them with plain loops. Without a driver it says so and
// succeeds: that everything links and loads is then all it shows.
#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/devices.hpp"
#include "device/dnn.hpp"
#include "device/stream.hpp"
#include "support/conv_cases.hpp"
#include "support/device_floats.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
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
  return right;
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
