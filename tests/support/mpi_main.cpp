// main of the tests that run under mpirun: every rank runs every test; a failure on any rank fails the run.
#include "comm/mpi_session.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

int main(int argc, char** argv) {
  soybean::comm::MpiSession mpi(&argc, &argv);
  ::testing::InitGoogleTest(&argc, argv);
  if (mpi.rank() != 0)
    delete ::testing::UnitTest::GetInstance()->listeners().Release(
        ::testing::UnitTest::GetInstance()->listeners().default_result_printer());
  int failed = RUN_ALL_TESTS();
  int any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any;
}
