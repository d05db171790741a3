#pragma once
// The table of kernels, keyed by operator name and precision. The executor calls them through this; each row's function
// unpacks the node's attributes and calls the free-standing kernels of its family.
#include "device/exec.hpp"
#include "device/tensor_view.hpp"
#include "graph/graph.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace soybean::kernels {

using device::Exec;
using device::TensorView;

struct Call {
  const graph::Node& node;
  std::span<const graph::Node* const> epilogue = {}; ///< where the kernel takes one: nodes to follow on the result
  std::span<const TensorView> inputs;  ///< blocks as the nodes' forms ask: the node's, then the epilogue's further ones
  std::span<const TensorView> outputs; ///< written completely; result i may be the memory of input ops in_place names
  void* scratch = nullptr;             ///< scratch_bytes(…) bytes, 64-byte aligned
  bool training = true;                ///< false: dropout passes through
};

struct Kernel {
  std::string_view op;
  void (*run)(const Exec&, const Call&);
  /// Scratch a call with these blocks needs; nullptr: none. Only boxes, shapes and layouts of the views are read.
  std::int64_t (*scratch_bytes)(const Exec&, const Call&);
  /// Runs a `bias` and a `relu` that follow on its result in the same call; others run them as calls of their own.
  bool takes_epilogue = false;
};

/// f32: Kokkos and the vendor library. f64: the plain reference (x_reference.cpp), host only.
const std::vector<Kernel>& table(DType precision);
const Kernel& find(std::string_view op, DType precision); ///< throws Bug

} // namespace soybean::kernels
