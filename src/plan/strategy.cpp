#include "plan/strategy.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorId;
using tiling::Entry;
using tiling::Tiling;

std::vector<ops::Choice> batch_choices(const Model& model, int variable, bool batch) {
  const ops::Form& form = model.forms[model.members[variable][0]];
  std::vector<ops::Choice> choices;
  for (ops::Choice choice : model.allowed[variable])
    if ((choice >= 0 && form.indices[choice].batch) == batch) choices.push_back(choice);
  return choices;
}

bool allows(const std::vector<ops::Choice>& choices, ops::Choice choice) {
  return std::find(choices.begin(), choices.end(), choice) != choices.end();
}

/// Splits the batch and nothing else; what has none (updates) is computed by all.
std::vector<ops::Choice> as_data(const Model& model, int variable) {
  std::vector<ops::Choice> choices = batch_choices(model, variable, true);
  if (choices.empty() && allows(model.allowed[variable], ops::choose_replicated)) choices = {ops::choose_replicated};
  return choices.empty() ? model.allowed[variable] : choices;
}

std::vector<ops::Choice> as_model(const Model& model, int variable) {
  const std::vector<ops::Choice> choices = batch_choices(model, variable, false);
  const bool possible = std::any_of(choices.begin(), choices.end(), [](auto c) { return c != ops::choose_linear; });
  return possible ? choices : model.allowed[variable];
}

/// A node on images: all its operands that run over samples are of rank 4.
bool is_on_images(const Model& model, NodeId node) {
  const Graph& graph = *model.graph;
  bool some = false, all = true;
  const auto look = [&](const std::vector<TensorId>& operands) {
    for (TensorId t : operands) {
      if (model.batch_dim[t] < 0) continue;
      some = true;
      all = all && graph.tensors[t].shape.size() == 4;
    }
  };
  look(graph.nodes[node].inputs);
  look(graph.nodes[node].outputs);
  return some && all;
}

bool is_dense(const Model& model, NodeId node) {
  return model.graph->nodes[node].op.starts_with("dense");
}

/// The parameter a kept tensor belongs to: itself, or the one updated together with this state.
TensorId parameter_of(const Graph& graph, TensorId id) {
  if (graph.tensors[id].role != graph::Role::state) return id;
  for (NodeId n : graph.tensors[id].consumers)
    if (graph.nodes[n].phase == graph::Phase::update) return graph.nodes[n].inputs[0];
  return id;
}

bool any_user(const Model& model, TensorId id, bool (*is)(const Model&, NodeId)) {
  const std::vector<NodeId>& users = model.graph->tensors[id].consumers;
  return std::any_of(users.begin(), users.end(), [&](NodeId n) { return is(model, n); });
}

void keep_whole(std::vector<Entry>& entries) {
  entries = {tiling::replicate()};
}

void keep_split(std::vector<Entry>& entries) {
  if (entries.size() > 1) std::erase(entries, tiling::replicate());
}

void restrict_entries(const Model& model, std::string_view strategy, TensorId id, std::vector<Entry>& entries) {
  const bool kept = is_kept(model.graph->tensors[id]);
  const TensorId parameter = parameter_of(*model.graph, id);
  if (strategy == "data" && kept) keep_whole(entries);
  if (strategy == "model" && kept) keep_split(entries);
  if (strategy == "model" && !kept)
    std::erase_if(entries,
                  [&](const Entry& e) { return e.kind == tiling::Kind::split && e.dim == model.batch_dim[id]; });
  if (strategy == "owt" && kept && any_user(model, parameter, is_on_images)) keep_whole(entries);
  if (strategy == "owt" && kept && any_user(model, parameter, is_dense)) keep_split(entries);
}

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
    const auto& members = model.members[variable];
    const bool leaves_idle = std::any_of(members.begin(), members.end(),
                                         [&](NodeId n) { return leaves_empty(model.forms[n], mesh, choices); });
    (leaves_idle ? idle : busy).push_back(choices);
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

Rules make_rules(const Model& model, std::string_view strategy) {
  Rules rules;
  for (std::size_t v = 0; v < model.members.size(); ++v) {
    const int variable = static_cast<int>(v);
    const NodeId node = model.members[v][0];
    if (strategy == "data" || (strategy == "owt" && is_on_images(model, node)))
      rules.choices.push_back(as_data(model, variable));
    else if (strategy == "model" || (strategy == "owt" && is_dense(model, node)))
      rules.choices.push_back(as_model(model, variable));
    else
      rules.choices.push_back(model.allowed[v]);
  }
  rules.entries = model.entries;
  for (std::size_t t = 0; t < rules.entries.size(); ++t)
    restrict_entries(model, strategy, static_cast<TensorId>(t), rules.entries[t]);
  return rules;
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

bool can_be_busy(const Model& model, const Rules& rules, int variable, const tiling::Mesh& mesh) {
  const auto busy = [&](const Choices& choices) {
    return std::none_of(model.members[variable].begin(), model.members[variable].end(),
                        [&](NodeId n) { return leaves_empty(model.forms[n], mesh, choices); });
  };
  // Depth first; an index that is split too often already stays so on further cuts.
  std::vector<Choices> open = {{}};
  while (!open.empty()) {
    const Choices choices = std::move(open.back());
    open.pop_back();
    if (choices.size() == mesh.cuts.size()) return true;
    for (ops::Choice choice : rules.choices[variable]) {
      Choices longer = choices;
      longer.push_back(choice);
      if (busy(longer)) open.push_back(std::move(longer));
    }
  }
  return false;
}

} // namespace soybean::plan
