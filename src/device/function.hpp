#pragma once
// Marks functions that kernels call on an accelerator, for headers that also the host's compiler reads (a CUDA Kokkos
// refuses to be included there).
#ifdef __CUDACC__
#define SOYBEAN_FUNCTION __host__ __device__ inline
#else
#define SOYBEAN_FUNCTION inline
#endif
