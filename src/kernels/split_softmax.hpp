#pragma once
// Softmax cross-entropy in steps, of blocks that may hold some of the classes (ops/README.md). Logits are plain [B, K]
// or, of sequences, [B, K, T, 1], whose rows are positions. B rows of K classes: softmax_parts reads 4BK bytes twice
// (the second time from cache), the gradient moves 8BK; the rest is small.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_softmax_parts(const Exec&, const Call&); ///< logits → max, Σ exp(x − max), class of the first maximum
void run_label_logit(const Exec&, const Call&);   ///< logits, labels → x[label] of the classes here[, Σ x / K]
void run_label_rank(const Exec&, const Call&);    ///< logits, x[label], labels → classes here before the label
void run_split_softmax_loss(const Exec&, const Call&); ///< see ops; → loss, correct, logsumexp[, top]
std::int64_t scratch_split_softmax_loss(const Exec&, const Call&);
void run_split_softmax_loss_grad(const Exec&, const Call&); ///< logits, logsumexp, labels, weights[, partners, shares]

namespace reference { // f64
void run_softmax_parts(const Exec&, const Call&);
void run_label_logit(const Exec&, const Call&);
void run_label_rank(const Exec&, const Call&);
void run_split_softmax_loss(const Exec&, const Call&);
void run_split_softmax_loss_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
