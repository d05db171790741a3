#pragma once
// What each named strategy leaves open: rules for nodes and tensors. Called inside src/plan only.
#include "plan/model.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::plan {

/// Stored tilings the user fixed, by tensor; normalised.
using Pins = std::map<graph::TensorId, tiling::Tiling>;

/// Which dims of images may be split.
enum class Images : std::uint8_t { whole, rows, rows_and_columns };

/// The rules of "auto", "data", "model", "owt" or "kcut" (which restricts nothing itself). Rows and columns of images
/// are split by "auto" and "kcut" alone.
struct Rules {
  std::vector<std::vector<ops::Choice>> choices;   ///< per variable: what it may do on a cut
  std::vector<std::vector<tiling::Entry>> entries; ///< per tensor: what its stored tiling may do on a cut
};
Rules make_rules(const Model& model, std::string_view strategy, Images images = Images::rows_and_columns);

} // namespace soybean::plan
