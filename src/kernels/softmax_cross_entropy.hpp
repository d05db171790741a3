#pragma once
// The softmax cross-entropy loss of a block of rows, the number of rows classified correctly, and the gradient. A block
// holds all classes of some samples; logits may be a flattened image (spatial > 1), whose classes count in logical
// order.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

struct LossInputs {
  const TensorView& logits;  ///< [B, K], or of sequences [B, K, T, 1]
  const TensorView& labels;  ///< [B] or [B, T] i32, each in [0, K) where the weight is not 0
  const TensorView& weights; ///< [B]; rows of weight 0 count nowhere, whatever they hold
  /// Of mixed samples: the partners' labels, like labels, and [B], the share of the sample itself.
  const TensorView *partners = nullptr, *shares = nullptr;
};

/// Which rows of a loss belong to a sample: one, or the positions of a sequence, which share its weight.
struct LossRows {
  std::int64_t rows = 0, positions = 1; ///< of the block: all, and of each sample
  double share = 1;                     ///< of the sample's weight that a row has
};
/// Of a block of logits or of the results of their parts.
LossRows loss_rows(const TensorView& logits);

/// Attributes of the node: label_smoothing ε, factor of the gradient, top_k (0: none).
struct LossOptions {
  double smoothing = 0, factor = 1;
  std::int64_t top_k = 0;
};
LossOptions loss_options(const graph::Node& node);

/// Scalars; top only with top_k.
struct LossResults {
  const TensorView &loss, &correct;
  const TensorView* top = nullptr;
};
/// loss = Σ weightᵢ·(logΣexp(xᵢ) − (1 − ε)·xᵢ[labelᵢ] − ε·mean(xᵢ)), of mixed samples shareᵢ·xᵢ[labelᵢ] +
/// (1 − shareᵢ)·xᵢ[partnerᵢ] in place of xᵢ[labelᵢ]; correct = number of rows with weight > 0 whose
/// first maximum is the label, top = number of those with less than top_k classes before the label (greater, or equal
/// and of a smaller number). Of a sequence it is the mean over its positions. A label out of range makes the loss NaN.
/// scratch: loss_scratch(exec, inputs) bytes.
void softmax_cross_entropy(const Exec& exec, const LossInputs& inputs, const LossOptions& options,
                           const LossResults& results, void* scratch);
std::int64_t loss_scratch(const Exec& exec, const LossInputs& inputs);
/// dlogits = factor·weightᵢ·(softmax(xᵢ) − (1 − ε)·onehot(labelᵢ) − ε/K); dlogits may be logits.
void softmax_cross_entropy_grad(const Exec& exec, const LossInputs& inputs, const LossOptions& options,
                                const TensorView& dlogits);

// Rows of the table, f32.
void run_softmax_cross_entropy(const Exec&, const Call&);
std::int64_t scratch_softmax_cross_entropy(const Exec&, const Call&);
void run_softmax_cross_entropy_grad(const Exec&, const Call&);

namespace reference { // rows of the table, f64; a label out of range throws Bug
void run_softmax_cross_entropy(const Exec&, const Call&);
void run_softmax_cross_entropy_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
