#pragma once
// The back ends that collectives_test.cpp holds to serial results: one list per program that links it.
#include "comm/comm.hpp"

#include <memory>
#include <vector>

namespace soybean::test {

struct Backend {
  const char* name;
  std::unique_ptr<comm::Comm> (*make)();
  int device = -1;        ///< of the Exec that collectives are started with
  bool allocates = false; ///< in steady state: MPI's own collectives may
  bool one_order = false; ///< all ranks wait for collectives in the same order
};
const std::vector<Backend>& backends();

} // namespace soybean::test
