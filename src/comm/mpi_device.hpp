#pragma once
// Whether messages may lie in an accelerator's memory: what the MPI library says of itself, whichever library it is.
// Called by make_comm and preflight.
#include "comm/comm.hpp"

namespace soybean::comm {

/// What this process's MPI library says; false where it says nothing, since one that can not would end the program.
/// (Open MPI: MPIX_Query_cuda_support; MPICH and its kin: MPIX_GPU_query_support, MPICH_GPU_SUPPORT_ENABLED.)
bool mpi_takes_device_memory();

/// Whether all ranks' libraries say so and messages between neighbours in their accelerators' memory arrive.
/// Collective; the same on all ranks.
bool exchanges_device_memory(int device);

} // namespace soybean::comm
