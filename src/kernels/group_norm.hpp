#pragma once
// Group, layer and rms normalisation. Blocks are channels-innermost and hold whole groups; a layer norm is one of a
// single group, of a sample or, over channels, of a position; so is an rms norm, of a position, without means and bias.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

/// How a block [samples][positions][channels] falls into groups, and where weights lie: that of position s and channel
/// c is element s·weight_position + c·weight_channel.
struct Groups {
  std::int64_t samples = 0, positions = 0, channels = 0;
  std::int64_t groups = 1, width = 0; ///< of a sample, channels of each
  std::int64_t weight_position = 0, weight_channel = 1;
  double eps = 0;
  bool centred = true; ///< means are taken off

  std::int64_t sample_size() const { return positions * channels; }
  std::int64_t weights() const { return weight_position == 0 ? channels : sample_size(); }
};
Groups make_groups(const graph::Node& node, const TensorView& x);

// Rows of the table, f32, for group_norm, layer_norm and rms_norm alike. x̂ = (x − mean)·r, r = 1/√(variance + eps),
// both of the group; of rms_norm the mean is 0, and so are mean(g) and everything about a bias.
void run_group_norm(const Exec&, const Call&); ///< x[, weight, bias] → x̂·weight + bias
void run_group_norm_grad(const Exec&, const Call&); ///< dy, x[, weight] → r·(g − mean(g) − x̂·mean(g·x̂)), g = dy·weight
void run_group_norm_sums(const Exec&, const Call&); ///< dy, x → Σ dy, Σ dy·x̂ over all that a weight is used for
std::int64_t scratch_group_norm_sums(const Exec&, const Call&);

namespace reference { // rows of the table, f64
void run_group_norm(const Exec&, const Call&);
void run_group_norm_grad(const Exec&, const Call&);
void run_group_norm_sums(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
