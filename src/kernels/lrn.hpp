#pragma once
// Local response normalisation across channels: d = k + alpha/size·Σ x² over the channels c − size/2 … c + (size − 1)/2
// around each, those outside counting as zero; y = x·d^−beta. Blocks hold all channels, channels-innermost.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

struct Lrn {
  std::int64_t rows = 0, channels = 0;
  std::int64_t before = 0, after = 0; ///< channels of the window on either side
  double alpha = 0;                   ///< over size
  double beta = 0, k = 0;
};
Lrn make_lrn(const graph::Node& node, const TensorView& x);

// Rows of the table, f32.
void run_lrn(const Exec&, const Call&);
/// dy, x → dy·d^−beta − 2·alpha/size·beta·x·Σ t over the channels whose windows hold this one, t = dy·x·d^(−beta − 1)
void run_lrn_grad(const Exec&, const Call&);
std::int64_t scratch_lrn_grad(const Exec&, const Call&);

namespace reference { // rows of the table, f64
void run_lrn(const Exec&, const Call&);
void run_lrn_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
