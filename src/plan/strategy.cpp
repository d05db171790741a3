#include "plan/strategy.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace soybean::plan {
namespace {

constexpr int first_image_dim = 2; // of what runs over samples: rows, then columns

using graph::Graph;
using graph::NodeId;
using graph::TensorId;
using tiling::Entry;

bool is_spatial(const ops::Form& form, ops::Choice choice) {
  return choice >= 0 && form.indices[choice].spatial;
}

std::vector<ops::Choice> batch_choices(const Model& model, int variable, bool batch) {
  const ops::Form& form = model.forms[model.members[variable][0]];
  std::vector<ops::Choice> choices;
  for (ops::Choice choice : model.allowed[variable])
    if ((choice >= 0 && form.indices[choice].batch) == batch && !is_spatial(form, choice)) choices.push_back(choice);
  return choices;
}

/// All but what splits other dims of images.
std::vector<ops::Choice> splitting(const Model& model, int variable, Images images) {
  const ops::Form& form = model.forms[model.members[variable][0]];
  std::vector<ops::Choice> choices = model.allowed[variable];
  std::erase_if(choices, [&](ops::Choice choice) {
    return is_spatial(form, choice) &&
           (images == Images::whole || (images == Images::rows && form.indices[choice].name != "h"));
  });
  return choices;
}

bool allows(const std::vector<ops::Choice>& choices, ops::Choice choice) {
  return std::find(choices.begin(), choices.end(), choice) != choices.end();
}

/// Splits the batch and nothing else; what has none (updates) is computed by all.
std::vector<ops::Choice> as_data(const Model& model, int variable) {
  std::vector<ops::Choice> choices = batch_choices(model, variable, true);
  if (choices.empty() && allows(model.allowed[variable], ops::choose_replicated)) choices = {ops::choose_replicated};
  return choices.empty() ? splitting(model, variable, Images::whole) : choices;
}

std::vector<ops::Choice> as_model(const Model& model, int variable) {
  const std::vector<ops::Choice> choices = batch_choices(model, variable, false);
  const bool possible = std::any_of(choices.begin(), choices.end(), [](auto c) { return c != ops::choose_linear; });
  return possible ? choices : splitting(model, variable, Images::whole);
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

} // namespace

Rules make_rules(const Model& model, std::string_view strategy, Images images) {
  Rules rules;
  if (strategy != "auto" && strategy != "kcut") images = Images::whole;
  for (std::size_t v = 0; v < model.members.size(); ++v) {
    const int variable = static_cast<int>(v);
    const NodeId node = model.members[v][0];
    if (strategy == "data" || (strategy == "owt" && is_on_images(model, node)))
      rules.choices.push_back(as_data(model, variable));
    else if (strategy == "model" || (strategy == "owt" && is_dense(model, node)))
      rules.choices.push_back(as_model(model, variable));
    else
      rules.choices.push_back(splitting(model, variable, images));
  }
  rules.entries = model.entries;
  for (std::size_t t = 0; t < rules.entries.size(); ++t) {
    const int whole = first_image_dim + static_cast<int>(images); // this dim and those after it
    if (model.batch_dim[t] >= 0) std::erase_if(rules.entries[t], [&](const Entry& e) { return e.dim >= whole; });
    restrict_entries(model, strategy, static_cast<TensorId>(t), rules.entries[t]);
  }
  return rules;
}

} // namespace soybean::plan
