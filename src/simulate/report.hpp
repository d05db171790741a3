#pragma once
// Predictions in words and as rows over rank counts. Called by soybean_plan.
#include "graph/graph.hpp"
#include "simulate/step.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace soybean::simulate {

/// "1.234 ms", "56.7 us", "12.3 s".
std::string seconds_text(double seconds);

/// Step time, samples per second, speed-up over data parallelism (`data` is that plan's step) and where the time goes,
/// in total and for each layer that takes any. Ends with a newline.
std::string report(const machine::Setting& setting, const graph::Graph& graph, std::int64_t batch, const Step& step,
                   const Step& data);

/// The step's figures by name, for scripts.
std::vector<std::pair<std::string, double>> figures(const Step& step, std::int64_t batch);

/// One rank count of a scaling study.
struct Point {
  int ranks = 0;
  std::int64_t batch = 0;
  std::string strategy; ///< of `step`
  double planning_seconds = 0;
  Step step, data;
  std::int64_t bytes = 0, data_bytes = 0; ///< moved per step, all ranks together
};

/// The columns' names, and one point's row; widths are fixed so that rows can be printed as they come. `first`: the
/// study's first point, which efficiency refers to: samples per second and rank beside that one's.
std::string table_head(const std::string& strategy);
std::string table_row(const Point& point, const Point& first);
std::string csv_head();
std::string csv_row(const Point& point, const Point& first);

/// "1..4096": 1, 2, 4, … 4096 (the last one whatever it is); "1,2,6": those. Throws Error (`--simulate: …`) for all
/// else, numbers below 1 or above 2^20, and lists that do not ascend.
std::vector<int> read_rank_counts(const std::string& text);

} // namespace soybean::simulate
