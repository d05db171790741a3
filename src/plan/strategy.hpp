#pragma once
// What each named strategy leaves open: rules for nodes and tensors. Called inside src/plan only.
#include "plan/model.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::plan {

/// Stored tilings the user fixed, by tensor; normalised.
using Pins = std::map<graph::TensorId, tiling::Tiling>;

/// The rules of "auto", "data", "model", "owt" or "kcut" (which restricts nothing itself).
struct Rules {
  std::vector<std::vector<ops::Choice>> choices;   ///< per variable: what it may do on a cut
  std::vector<std::vector<tiling::Entry>> entries; ///< per tensor: what its stored tiling may do on a cut
};
Rules make_rules(const Model& model, std::string_view strategy);

} // namespace soybean::plan
