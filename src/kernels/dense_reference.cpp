#include "kernels/dense_reference.hpp"

#include "device/rows.hpp"
#include "kernels/dense.hpp"
#include "kernels/gemm_reference.hpp"
#include "kernels/layout.hpp"

#include <algorithm>

namespace soybean::kernels {

template<class T>
void matmul_reference(const device::Exec& exec, const device::Matmul& s, const T* a, const T* b, T* c) {
  const Matrix<const T> left = s.a_transposed ? Matrix<const T>{a, 1, s.m} : Matrix<const T>{a, s.k, 1};
  const Matrix<const T> right = s.b_transposed ? Matrix<const T>{b, 1, s.k} : Matrix<const T>{b, s.n, 1};
  constexpr std::int64_t block = 64; // one piece of work: a block × block part of c
  const std::int64_t down = (s.m + block - 1) / block, across = (s.n + block - 1) / block;
#pragma omp parallel for schedule(static) num_threads(device::threads_for(exec, s.m* s.n* s.k))
  for (std::int64_t piece = 0; piece < down * across; ++piece) {
    const std::int64_t i = piece / across * block, j = piece % across * block;
    gemm_reference<T>({std::min(block, s.m - i), std::min(block, s.n - j), s.k},
                      {left.data + i * left.row, left.row, left.column},
                      {right.data + j * right.column, right.row, right.column}, {c + i * s.n + j, s.n, 1}, false);
  }
}

template void matmul_reference(const device::Exec&, const device::Matmul&, const float*, const float*, float*);
template void matmul_reference(const device::Exec&, const device::Matmul&, const double*, const double*, double*);

namespace {

void run(const Exec& exec, const Call& call, const device::Matmul& product) {
  for (const TensorView& view : call.inputs) expect(view, DType::f64);
  expect(call.outputs[0], DType::f64);
  matmul_reference(exec, product, call.inputs[0].as<double>(), call.inputs[1].as<double>(),
                   call.outputs[0].as<double>());
}

} // namespace

namespace reference { // rows of the table, f64
void run_dense(const Exec& exec, const Call& call) {
  run(exec, call, dense_product(call));
}
void run_dense_grad_input(const Exec& exec, const Call& call) {
  run(exec, call, dense_grad_input_product(call));
}
void run_dense_grad_weight(const Exec& exec, const Call& call) {
  run(exec, call, dense_grad_weight_product(call));
}

} // namespace reference
} // namespace soybean::kernels
