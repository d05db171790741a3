#pragma once
// Steps of random graphs on executors, for the tests of the executor: what the host feeds, and what it reads back. All
// a function of names, indices and step, so that every plan on every number of ranks sees the same numbers.
#include "program/program.hpp"
#include "runtime/executor.hpp"

#include <string>
#include <vector>

namespace soybean::support {

/// The training and the evaluation program of a run, verified, passes done except those in `skip`.
std::vector<program::Program> programs_of(const graph::Graph& graph, const plan::Plan& plan,
                                          const std::vector<std::string>& skip = {});

/// Writes the sources of a step. Values are floats, so that all precisions read the same.
void feed(const graph::Graph& graph, runtime::Executor& executor, std::int64_t step);

/// The part `box` of a block of floating-point numbers, in logical order.
std::vector<double> values_of(const runtime::Executor& executor, const device::TensorView& view, const Box& box);

/// Largest difference of values in a block of `values` over the largest of all; tensors that are zero but for rounding
/// do not count.
double error_of(const std::vector<double>& got, const std::vector<double>& expected, const std::vector<double>& all);

/// Holds parameters and states of a parallel run to the serial one of the same graph: expects errors <= tolerance.
struct Tolerance {
  double value;
};
void expect_same_state(const runtime::Executor& parallel, const runtime::Executor& serial, Tolerance tolerance,
                       const std::string& what);

} // namespace soybean::support
