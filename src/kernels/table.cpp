#include "base/error.hpp"
#include "kernels/kernel.hpp"

namespace soybean::kernels {

namespace {

/// One row per operator: Kokkos kernels and the vendor library.
const std::vector<Kernel>& fast_table() {
  static const std::vector<Kernel> rows = {};
  return rows;
}

/// One row per operator: the plain references in double.
const std::vector<Kernel>& reference_table() {
  static const std::vector<Kernel> rows = {};
  return rows;
}

} // namespace

const std::vector<Kernel>& table(DType precision) {
  ensure(precision != DType::i32, "kernels are in fp32 or fp64");
  return precision == DType::f32 ? fast_table() : reference_table();
}

const Kernel& find(std::string_view op, DType precision) {
  for (const Kernel& kernel : table(precision))
    if (kernel.op == op) return kernel;
  throw Bug(fmt::format("no {} kernel for operator {}", to_string(precision), op));
}

} // namespace soybean::kernels
