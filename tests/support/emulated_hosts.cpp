// Linked into a program, makes its ranks believe that there are two of them on each host, by MPI's profiling interface.
#include <mpi.h>

#include <cstdio>

extern "C" int MPI_Get_processor_name(char* name, int* length) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  *length = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "node%d", rank / 2);
  return MPI_SUCCESS;
}
