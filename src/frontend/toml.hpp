#pragma once
// Turns the [model] table of a model file into a forward Graph with its loss: layers in order, named inputs, repeat and
// residual blocks. Hides how layers are written; called by the programs and by src/train.
#include "base/types.hpp"
#include "config/table.hpp"
#include "graph/graph.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace soybean::frontend {

/// The forward graph of one batch. Keys of [model]: name, input, layers, loss, bias, init (src/frontend/README.md lists
/// those of the layers). `seed` is that of the run, for dropout; `mixed`: samples come mixed (data.augment). `places`:
/// becomes file and line of every layer, by name. Throws Error with file and line, naming the layer where a shape does
/// not fit. Unknown keys are left to Table::report_unread.
graph::Graph build_graph(const config::Table& model, std::int64_t batch, DType precision, std::uint64_t seed,
                         bool mixed = false, std::map<std::string, std::string>* places = nullptr);

} // namespace soybean::frontend
