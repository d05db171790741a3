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

/// What a step with a batch of so many bytes took longer than its program.
struct BatchSample {
  double bytes = 0, seconds = 0;
};

/// What reading takes, from a small batch and a large one.
machine::Batch fit_batch(const BatchSample& small, const BatchSample& large);

/// What a rank's kernels reach. `kernels`: of many operators and sizes, the smallest of which take no longer than their
/// launch; `sweep`: one element-wise operator over sizes, ascending. Products and convolutions get a rate for
/// each size, all else a bandwidth where it stays well below that of the sweep.
machine::Processor fit_processor(const std::vector<Sample>& kernels, const std::vector<Sample>& sweep,
                                 machine::Precision precision);

/// Rates of one more precision for a processor that is known: all operators by their flops, nothing by bytes.
machine::Rates fit_rates(const machine::Processor& processor, const std::vector<Sample>& kernels);

/// The processor of a host whose ranks have reached `each` at the same time.
machine::Processor of_host(machine::Processor each, int ranks);
machine::Batch of_host(machine::Batch each, int ranks);

} // namespace soybean::calibrate
