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

/// What is decided already on some cuts: there each variable keeps its choice and each tensor its entry.
struct Fixed {
  std::vector<char> open;             ///< per cut of the mesh: still to be decided; empty: all are
  std::vector<Choices> choices;       ///< per variable, per cut
  std::vector<tiling::Tiling> stored; ///< per tensor; not normalised, so that units are known
};

/// Per tensor, what each stored tiling of a domain was before it was normalised.
using RawTilings = std::vector<std::map<tiling::Tiling, tiling::Tiling>>;

/// All choice vectors and stored tilings the rules allow. `raw`, if given, receives what they were.
Domain make_domain(const Model& model, const Rules& rules, const tiling::Mesh& mesh, const Pins& pins,
                   const Fixed& fixed = {}, RawTilings* raw = nullptr);

/// Whether the variable has a choice vector on the mesh that leaves no rank without work.
bool can_be_busy(const Model& model, const Rules& rules, int variable, const tiling::Mesh& mesh);

} // namespace soybean::plan
