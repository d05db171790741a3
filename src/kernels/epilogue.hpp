#pragma once
// What follows on a result in the same call: a bias, an activation. Used by the families whose row in the table says
// that they take it along (conv2d, dense), so that a result is gone over once, or not at all where the vendor library
// adds the bias.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

struct Epilogue {
  const TensorView* bias = nullptr; ///< [channels] of the result; nullptr: none
  bool relu = false;
};

/// The call's epilogue: `bias`, `relu`, or both in this order. Throws Bug for another one.
Epilogue epilogue_of(const Call& call);

/// y ← relu(y + bias), in place, in one go over y; nothing is done for an empty epilogue.
void finish(const Exec& exec, const Epilogue& epilogue, const TensorView& y);

} // namespace soybean::kernels
