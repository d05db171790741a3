#pragma once
// --verify: holds the parallel run to the serial one (DESIGN §6). Collective.
//
// Single precision: every node of the step is given the same operands in both programs, cut into the plan's blocks, and
// its result is put together again and compared with the serial result, relative to that result's norm (1e-5); of a
// whole step only the loss is compared (1e-5), since rounding in another order flips single masks. Double precision:
// losses of some steps and the weights after them, relative (1e-9).
#include "comm/comm.hpp"
#include "device/exec.hpp"
#include "train/job.hpp"

#include <string>
#include <vector>

namespace soybean::train {

struct Deviation {
  std::string name; ///< of a tensor, or "loss"
  double error = 0; ///< relative to the norm of the serial value
  double bound = 0;
  bool passed() const { return error <= bound; } ///< false for NaN too
};

struct VerifyReport {
  std::vector<Deviation> operators; ///< fp32, per result tensor
  Deviation step_loss;              ///< fp32, of one whole step
  std::vector<Deviation> weights;   ///< fp64, per parameter and state after `steps` steps
  Deviation losses;                 ///< fp64, the worst of the steps
  std::int64_t steps = 0;
  bool passed() const;
};

/// `single` and `twice` are the same job in fp32 and fp64; `exec` is the former's.
VerifyReport verify(const Job& single, const Job& twice, comm::Comm& comm, const device::Exec& exec);

std::string to_string(const VerifyReport& report);

} // namespace soybean::train
