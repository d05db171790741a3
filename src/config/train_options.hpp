#pragma once
// Reading of the section [train]. Private to src/config.
#include "config/options.hpp"
#include "config/table.hpp"

namespace soybean::config {

/// Throws Error.
TrainOptions read_train(const Table& table);

} // namespace soybean::config
