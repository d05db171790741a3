#pragma once
// Softmax and its logarithm over the channels of every position, or over features. Blocks hold all of them.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

/// A block as rows of values that are normalised together.
struct SoftmaxRows {
  std::int64_t rows = 0, width = 0;
};
SoftmaxRows softmax_rows(const TensorView& x);

// Rows of the table, f32.
void run_softmax(const Exec&, const Call&);          ///< x → exp(x − max)/Σ exp(x − max)
void run_softmax_grad(const Exec&, const Call&);     ///< dy, y → y·(dy − Σ dy·y)
void run_log_softmax(const Exec&, const Call&);      ///< x → x − max − log Σ exp(x − max)
void run_log_softmax_grad(const Exec&, const Call&); ///< dy, y → dy − exp(y)·Σ dy

namespace reference { // rows of the table, f64
void run_softmax(const Exec&, const Call&);
void run_softmax_grad(const Exec&, const Call&);
void run_log_softmax(const Exec&, const Call&);
void run_log_softmax_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
