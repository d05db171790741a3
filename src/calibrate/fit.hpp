#pragma once
// From measured kernels to the figures of a machine file. Pure: knows no clock. Called by calibrate.cpp.
#include "machine/machine.hpp"
#include "machine/time.hpp"

#include <string>
#include <vector>

namespace soybean::calibrate {

/// One kernel as it was measured on every rank at the same time.
struct Sample {
  std::string op;
  machine::Amount amount;
  double seconds = 0;
};

/// What a rank's kernels reach. `kernels`: of many operators and sizes, the smallest of which take no longer than their
/// launch; `sweep`: one element-wise operator over sizes, ascending. Products and convolutions get a rate for
/// each size, all else a bandwidth where it stays well below that of the sweep.
machine::Processor fit_processor(const std::vector<Sample>& kernels, const std::vector<Sample>& sweep,
                                 machine::Precision precision);

/// Rates of one more precision for a processor that is known: all operators by their flops, nothing by bytes.
machine::Rates fit_rates(const machine::Processor& processor, const std::vector<Sample>& kernels);

/// The processor of a host whose ranks have reached `each` at the same time.
machine::Processor of_host(machine::Processor each, int ranks);

} // namespace soybean::calibrate
