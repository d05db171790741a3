#include "ops/form.hpp"

#include "base/error.hpp"
#include "ops/common.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

std::vector<std::string_view> words(std::string_view text, char separator) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view word = text.substr(0, end);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (!word.empty()) found.push_back(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

int find_or_add(Form& form, std::string_view name) {
  for (std::size_t i = 0; i < form.indices.size(); ++i)
    if (form.indices[i].name == name) return static_cast<int>(i);
  form.indices.push_back({.name = std::string(name),
                          .count = 0,
                          .splittable = false,
                          .batch = name == "b",
                          .spatial = name == "h" || name == "w"});
  return static_cast<int>(form.indices.size()) - 1;
}

OperandForm parse_operand(Form& form, std::string_view text, const Tensor& tensor, const OperandHalos& halos) {
  OperandForm dims;
  if (text != "1")
    for (std::string_view name : words(text, ' ')) {
      const bool halo = name.starts_with('~');
      OperandDim& dim = dims.emplace_back();
      if (name != ".") dim.index = find_or_add(form, halo ? name.substr(1) : name);
      if (halo) dim.halo = halos.at(dims.size() - 3); // of dims 2 and 3
    }
  ensure(dims.size() == tensor.shape.size(),
         fmt::format("form '{}' does not fit tensor '{}' of shape {}", text, tensor.name, to_string(tensor.shape)));
  return dims;
}

/// All (tensor, form) pairs of a node.
template<class F>
void each_operand(const Graph& graph, const Node& node, Form& form, F&& f) {
  for (std::size_t i = 0; i < form.inputs.size(); ++i) f(graph.tensors[node.inputs[i]], form.inputs[i]);
  for (std::size_t i = 0; i < form.outputs.size(); ++i) f(graph.tensors[node.outputs[i]], form.outputs[i]);
}

bool has_halo(const OperandDim& dim) {
  return dim.halo.reach != tiling::Reach::none;
}

/// Finds for each index its steps, the smallest number of steps whose blocks respect the units of all tensors, and from
/// these the units along the dims.
void derive_units(const Graph& graph, const Node& node, Form& form, std::int64_t groups) {
  std::vector<std::int64_t> steps(form.indices.size(), 0), quantum(form.indices.size(), 1);
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (form.indices[i].name == "g") steps[i] = groups;
  each_operand(graph, node, form, [&](const Tensor& tensor, const OperandForm& dims) {
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const int i = dims[d].index;
      if (i < 0 || form.indices[i].name == "g" || has_halo(dims[d])) continue;
      steps[i] = steps[i] == 0 ? tensor.shape[d] : std::min(steps[i], tensor.shape[d]);
    }
  });
  each_operand(graph, node, form, [&](const Tensor& tensor, const OperandForm& dims) {
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const int i = dims[d].index;
      if (i < 0 || has_halo(dims[d])) continue;
      ensure(tensor.shape[d] % steps[i] == 0, fmt::format("index '{}' of node '{}' does not fit dim {} of tensor '{}'",
                                                          form.indices[i].name, node.name, d, tensor.name));
      const std::int64_t step = tensor.shape[d] / steps[i];
      quantum[i] = std::min(steps[i], std::lcm(quantum[i], tensor.units[d] / std::gcd(tensor.units[d], step)));
    }
  });
  each_operand(graph, node, form, [&](const Tensor& tensor, OperandForm& dims) {
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d].index >= 0 && !has_halo(dims[d]))
        dims[d].unit = quantum[dims[d].index] * (tensor.shape[d] / steps[dims[d].index]);
  });
  for (std::size_t i = 0; i < steps.size(); ++i) form.indices[i].count = steps[i] / quantum[i];
}

/// The entry of one operand on one cut.
tiling::Entry entry(const Form& form, const OperandForm& dims, Choice choice, bool result) {
  if (choice == choose_linear) return tiling::partial();
  if (choice == choose_replicated) return tiling::replicate();
  ensure(choice >= 0 && choice < static_cast<Choice>(form.indices.size()), "choice out of range");
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d].index == choice) return tiling::split(static_cast<int>(d), dims[d].unit, dims[d].halo);
  return result ? tiling::partial() : tiling::replicate();
}

std::string operand_text(const Form& form, const OperandForm& dims) {
  if (dims.empty()) return "1";
  std::string text;
  for (const OperandDim& dim : dims)
    text += (text.empty() ? "" : " ") + std::string(has_halo(dim) ? "~" : "") +
            (dim.index < 0 ? std::string(".") : form.indices[dim.index].name);
  return text;
}

} // namespace

Form make_form(const Graph& graph, const Node& node, const FormText& given) {
  const std::size_t arrow = given.text.find("->");
  ensure(arrow != std::string::npos, "a form without '->'");
  const std::string_view text = given.text;
  const auto inputs = words(text.substr(0, arrow), ','), outputs = words(text.substr(arrow + 2), ',');
  ensure(inputs.size() == node.inputs.size() && outputs.size() == node.outputs.size(),
         fmt::format("form '{}' does not fit the operands of node '{}'", text, node.name));
  Form form;
  form.replicable = given.replicable;
  form.may_idle = given.may_idle;
  form.linear = given.linear;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    form.inputs.push_back(parse_operand(form, inputs[i], graph.tensors[node.inputs[i]],
                                        i < given.halos.size() ? given.halos[i] : OperandHalos{}));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    form.outputs.push_back(parse_operand(form, outputs[i], graph.tensors[node.outputs[i]], {}));
  derive_units(graph, node, form, given.groups);
  const auto split = words(given.split, ' ');
  for (LoopIndex& index : form.indices)
    index.splittable = std::find(split.begin(), split.end(), index.name) != split.end();
  return form;
}

std::vector<Choice> allowed_choices(const Form& form) {
  std::vector<Choice> choices;
  for (const bool spatial : {false, true})
    for (std::size_t i = 0; i < form.indices.size(); ++i)
      if (form.indices[i].splittable && form.indices[i].spatial == spatial) choices.push_back(static_cast<Choice>(i));
  if (form.replicable) choices.push_back(choose_replicated);
  if (form.linear) choices.push_back(choose_linear);
  return choices;
}

OperandTilings operand_tilings(const Form& form, const Graph& graph, const Node& node, const tiling::Mesh& mesh,
                               const std::vector<Choice>& choices) {
  ensure(choices.size() == mesh.cuts.size(), fmt::format("node '{}' needs one choice per cut", node.name));
  const std::vector<Choice> allowed = allowed_choices(form);
  for (Choice choice : choices)
    ensure(std::find(allowed.begin(), allowed.end(), choice) != allowed.end(),
           fmt::format("node '{}' can not do '{}' on a cut", node.name, to_string(form, choice)));
  const auto tiling_of = [&](const OperandForm& dims, graph::TensorId tensor, bool result) {
    tiling::Tiling tiling;
    for (Choice choice : choices) tiling.push_back(entry(form, dims, choice, result));
    return tiling::normalise(std::move(tiling), graph.tensors[tensor].shape, mesh);
  };
  OperandTilings tilings;
  for (std::size_t i = 0; i < form.inputs.size(); ++i)
    tilings.inputs.push_back(tiling_of(form.inputs[i], node.inputs[i], false));
  for (std::size_t i = 0; i < form.outputs.size(); ++i)
    tilings.outputs.push_back(tiling_of(form.outputs[i], node.outputs[i], true));
  return tilings;
}

std::string to_string(const Form& form, Choice choice) {
  if (choice == choose_replicated) return "replicated";
  if (choice == choose_linear) return "linear";
  ensure(choice >= 0 && choice < static_cast<Choice>(form.indices.size()), "choice out of range");
  return form.indices[choice].name;
}

std::string to_string(const Form& form) {
  std::string text;
  for (std::size_t i = 0; i < form.inputs.size(); ++i) text += (i ? ", " : "") + operand_text(form, form.inputs[i]);
  for (std::size_t i = 0; i < form.outputs.size(); ++i)
    text += (i ? ", " : " -> ") + operand_text(form, form.outputs[i]);
  return text;
}

} // namespace soybean::ops
