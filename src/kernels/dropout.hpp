#pragma once
// Dropout and its gradient, which draws the same mask again. The mask is a function of (seed, stream, step) and the
// element's global logical index alone, so it is the same for every tiling, layout and precision.
#include "base/philox.hpp"
#include "kernels/kernel.hpp"

namespace soybean::kernels {

/// What the masks of one layer are drawn from; the step is read from the hyper vector.
struct Dropout {
  double rate = 0;
  philox::Stream stream;  ///< seed and name
  std::int64_t first = 0; ///< logical index in the whole batch of the tensor's first element
};
Dropout make_dropout(const graph::Node& node);
/// Dropout::first of a node that works on a part of the batch (attribute first_row), else 0.
std::int64_t first_element(const graph::Node& node, const TensorView& x);

/// y[i] = uniform(stream at step hyper[1], logical index of i) ≥ rate ? x[i] / (1 − rate) : 0. y may be x. Also the
/// gradient, from dy to dx.
void dropout(const Exec& exec, const Dropout& dropout, const TensorView& x, const TensorView& hyper,
             const TensorView& y);

// Rows of the table, f32. When not training, x is passed through.
void run_dropout(const Exec&, const Call&);
void run_dropout_grad(const Exec&, const Call&);

namespace reference { // rows of the table, f64
void run_dropout(const Exec&, const Call&);
void run_dropout_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
