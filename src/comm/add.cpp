#include "comm/add.hpp"

namespace soybean::comm {

namespace {

template<class T>
void add_as(void* out, const void* a, const void* b, std::int64_t count, int threads) {
  T* const sum = static_cast<T*>(out);
  const T* const x = static_cast<const T*>(a);
  const T* const y = static_cast<const T*>(b);
  constexpr std::int64_t worth_threads = 1 << 16; // elements; below, starting threads costs more than it saves
  if (threads > 1 && count >= worth_threads) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (std::int64_t i = 0; i < count; ++i) sum[i] = x[i] + y[i];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) sum[i] = x[i] + y[i];
  }
}

} // namespace

void add(DType type, void* out, const void* a, const void* b, std::int64_t count, int threads) {
  switch (type) {
  case DType::f32:
    return add_as<float>(out, a, b, count, threads);
  case DType::f64:
    return add_as<double>(out, a, b, count, threads);
  case DType::i32:
    return add_as<std::uint32_t>(out, a, b, count, threads);
  }
}

} // namespace soybean::comm
