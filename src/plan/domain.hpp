#pragma once
// What a search may choose from: the choice vectors and stored tilings that follow from a strategy's rules, a mesh and
// pins. Called inside src/plan only.
#include "plan/classes.hpp"
#include "plan/model.hpp"
#include "plan/strategy.hpp"

#include <map>
#include <vector>

namespace soybean::plan {

/// What a search may choose from: choice vectors per variable, partial-free stored tilings per tensor (normalised).
struct Domain {
  std::vector<std::vector<Choices>> choices;
  std::vector<std::vector<Choices>>
      idle; ///< those that leave some rank without work: only where nothing else is possible
  std::vector<std::vector<tiling::Tiling>> stored;
  std::vector<char> must_store; ///< per tensor: pinned, so never passed on partial
};

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

/// Adds all stored tilings the rules allow to a domain that has its choices.
void add_stored(const Model& model, const Rules& rules, const tiling::Mesh& mesh, const Pins& pins, Domain& domain);

/// The classes of all choice vectors and stored tilings the rules allow.
Domain make_class_domain(const Model& model, const Rules& rules, const tiling::Mesh& mesh, const Alike& alike,
                         const Pins& pins);

/// Whether some rank would be without work.
bool leaves_idle(const Model& model, int variable, const tiling::Mesh& mesh, const Choices& choices);

} // namespace soybean::plan
