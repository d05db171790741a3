#pragma once
// Predictions in words and figures. Called by soybean_plan and src/explain.
#include "graph/graph.hpp"
#include "simulate/step.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace soybean::simulate {

/// Step time, samples per second, speed-up over data parallelism (`data` is that plan's step) and where the time goes
/// in total. Ends with a newline.
std::string summary(const machine::Setting& setting, std::int64_t batch, const Step& step, const Step& data);

/// The summary, and where the time goes in each layer that takes any.
std::string report(const machine::Setting& setting, const graph::Graph& graph, std::int64_t batch, const Step& step,
                   const Step& data);

/// The step's figures by name, for scripts.
std::vector<std::pair<std::string, double>> figures(const Step& step, std::int64_t batch);

} // namespace soybean::simulate
