#pragma once
// What each named strategy leaves open: rules for nodes and tensors, and the search domains that follow from them.
// Called inside src/plan only.
#include "plan/problem.hpp"

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

/// All choice vectors and stored tilings the rules allow.
Domain make_domain(const Model& model, const Rules& rules, const tiling::Mesh& mesh, const Pins& pins);

/// What is fixed on the leading cuts: choice vectors per variable and stored tilings per tensor (not normalised: their
/// units; empty where the tensor is not stored).
struct Prefix {
  std::vector<Choices> choices;
  std::vector<tiling::Tiling> stored;
};
/// The same with one more cut open, `mesh` having one cut more than the prefix. `raw` receives, per tensor, what each
/// candidate was before normalisation.
Domain extend_domain(const Model& model, const Rules& rules, const tiling::Mesh& mesh, const Prefix& prefix,
                     const Pins& pins, std::vector<std::map<tiling::Tiling, tiling::Tiling>>& raw);

} // namespace soybean::plan
