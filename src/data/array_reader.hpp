#pragma once
// A reader over arrays and a list of labels per split: what the readers of plain files make once they have understood
// their format.
#include "data/array.hpp"
#include "data/reader.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace soybean::data {

struct ArraySplit {
  std::vector<Array> pieces;        ///< one after the other; samples of one shape
  std::vector<std::int32_t> labels; ///< where the model reads them
  std::string labels_name;          ///< what errors call them
  std::optional<Array> targets;     ///< the same
};

/// Checks that there is a label in [0, classes) for each sample where the model reads labels, likewise targets, and at
/// least one sample to train with. Throws Error
/// naming the files.
std::unique_ptr<Reader> make_array_reader(ArraySplit train, ArraySplit validation, const Expected& expected);

/// Throws Error(`where[i]: …`) for the first label that is no class of the model.
void check_labels(const std::vector<std::int32_t>& labels, std::int64_t classes, const std::string& where);

} // namespace soybean::data
