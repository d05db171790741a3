#include "plan/domain.hpp"

#include <algorithm>

namespace soybean::plan {
namespace {

using graph::NodeId;
using graph::TensorId;
using tiling::Entry;
using tiling::Tiling;

/// True when the entry can stand beside those of the leading cuts: one unit per dim.
bool agrees(const Tiling& tiling, const Entry& entry) {
  return std::all_of(tiling.begin(), tiling.end(), [&](const Entry& e) {
    return e.kind != tiling::Kind::split || entry.kind != tiling::Kind::split || e.dim != entry.dim ||
           e.unit == entry.unit;
  });
}

/// All lists with one of `options` (or the entry of `fixed` where that cut is not open) for each cut, where neighbours
/// `fit`.
template<class List, class Option, class Fits>
std::vector<List> all_lists(std::size_t cuts, const std::vector<Option>& options, const std::vector<char>& open,
                            const List& fixed, Fits&& fits) {
  std::vector<List> lists = {{}};
  for (std::size_t cut = 0; cut < cuts; ++cut) {
    const std::vector<Option> here = open.empty() || open[cut] ? options : std::vector<Option>{fixed[cut]};
    std::vector<List> longer;
    for (const List& list : lists)
      for (const Option& option : here) {
        if (!fits(list, option)) continue;
        longer.push_back(list);
        longer.back().push_back(option);
      }
    lists = std::move(longer);
  }
  return lists;
}

/// Adds a variable's choice vectors to the domain, those that leave some rank without work apart.
void add_choices(const Model& model, int variable, const tiling::Mesh& mesh, const std::vector<Choices>& list,
                 Domain& domain) {
  std::vector<Choices>& busy = domain.choices.emplace_back();
  std::vector<Choices>& idle = domain.idle.emplace_back();
  for (const Choices& choices : list) {
    (leaves_idle(model, variable, mesh, choices) ? idle : busy).push_back(choices);
  }
}

/// Normalised, without repetition, the first of equal ones staying; `raw` receives what each was before.
std::vector<Tiling> normalised(const std::vector<Tiling>& tilings, const Shape& shape, const tiling::Mesh& mesh,
                               std::map<Tiling, Tiling>* raw) {
  std::vector<Tiling> list;
  std::map<Tiling, Tiling> seen;
  for (const Tiling& tiling : tilings) {
    Tiling normal = tiling::normalise(tiling, shape, mesh);
    if (seen.emplace(normal, tiling).second) list.push_back(std::move(normal));
  }
  if (raw != nullptr) *raw = std::move(seen);
  return list;
}

void apply_pins(const Model& model, const tiling::Mesh& mesh, const Pins& pins, Domain& domain) {
  domain.must_store.assign(model.graph->tensors.size(), 0);
  for (const auto& [id, tiling] : pins) {
    const Tiling leading(tiling.begin(), tiling.begin() + static_cast<std::ptrdiff_t>(mesh.cuts.size()));
    domain.stored[id] = {tiling::normalise(leading, model.graph->tensors[id].shape, mesh)};
    domain.must_store[id] = 1;
  }
}

} // namespace

bool leaves_idle(const Model& model, int variable, const tiling::Mesh& mesh, const Choices& choices) {
  const std::vector<NodeId>& members = model.members[variable];
  return std::any_of(members.begin(), members.end(),
                     [&](NodeId n) { return leaves_empty(model.forms[n], mesh, choices); });
}

Domain make_domain(const Model& model, const Rules& rules, const tiling::Mesh& mesh, const Pins& pins,
                   const Fixed& fixed, RawTilings* raw) {
  const std::size_t cuts = mesh.cuts.size();
  const bool any_fixed = !fixed.open.empty();
  Domain domain;
  for (std::size_t v = 0; v < rules.choices.size(); ++v) {
    const std::vector<Choices> list =
        all_lists(cuts, rules.choices[v], fixed.open, any_fixed ? fixed.choices[v] : Choices{},
                  [](const Choices&, ops::Choice) { return true; });
    add_choices(model, static_cast<int>(v), mesh, list, domain);
  }
  if (raw != nullptr) raw->assign(rules.entries.size(), {});
  for (std::size_t t = 0; t < rules.entries.size(); ++t) {
    const std::vector<Tiling> list =
        all_lists(cuts, rules.entries[t], fixed.open, any_fixed ? fixed.stored[t] : Tiling{}, agrees);
    domain.stored.push_back(
        normalised(list, model.graph->tensors[t].shape, mesh, raw != nullptr ? &(*raw)[t] : nullptr));
  }
  apply_pins(model, mesh, pins, domain);
  return domain;
}

void add_stored(const Model& model, const Rules& rules, const tiling::Mesh& mesh, const Pins& pins, Domain& domain) {
  for (std::size_t t = 0; t < rules.entries.size(); ++t)
    domain.stored.push_back(normalised(all_lists(mesh.cuts.size(), rules.entries[t], {}, Tiling{}, agrees),
                                       model.graph->tensors[t].shape, mesh, nullptr));
  apply_pins(model, mesh, pins, domain);
}

Domain make_class_domain(const Model& model, const Rules& rules, const tiling::Mesh& mesh, const Alike& alike,
                         const Pins& pins) {
  const std::size_t cuts = mesh.cuts.size();
  Domain domain;
  for (std::size_t v = 0; v < rules.choices.size(); ++v)
    add_choices(model, static_cast<int>(v), mesh,
                all_lists(cuts, rules.choices[v], {}, Choices{},
                          [&](const Choices& list, ops::Choice next) { return continues_class(list, next, alike); }),
                domain);
  for (std::size_t t = 0; t < rules.entries.size(); ++t) {
    const std::vector<Tiling> list =
        all_lists(cuts, rules.entries[t], {}, Tiling{}, [&](const Tiling& tiling, const Entry& next) {
          return agrees(tiling, next) && continues_class(tiling, next, alike);
        });
    domain.stored.push_back(normalised(list, model.graph->tensors[t].shape, mesh, nullptr));
  }
  apply_pins(model, mesh, pins, domain);
  for (std::vector<Tiling>& list : domain.stored) {
    std::vector<Tiling> classes;
    for (Tiling& tiling : list) {
      Tiling representative = class_of(std::move(tiling), alike);
      if (std::find(classes.begin(), classes.end(), representative) == classes.end())
        classes.push_back(std::move(representative));
    }
    list = std::move(classes);
  }
  return domain;
}

} // namespace soybean::plan
