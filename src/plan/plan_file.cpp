#include "plan/plan_file.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "config/table.hpp"
#include "ops/operator.hpp"
#include "plan/legality.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorId;
using Json = nlohmann::ordered_json;

constexpr int format_version = 1;

/// What a plan depends on of a model besides shapes: nodes, what they read and make, how they may be split.
std::string model_hash(const Graph& graph) {
  std::string text;
  for (const graph::Node& node : graph.nodes) {
    text += fmt::format("{} {} {}", node.name, node.op, to_string(ops::form(graph, node)));
    for (TensorId t : node.inputs) text += " " + graph.tensors[t].name;
    for (TensorId t : node.outputs) text += " " + graph.tensors[t].name;
    text += node.twin == graph::none ? "\n" : " with " + graph.nodes[node.twin].name + "\n";
  }
  return to_hex(hash_text(text));
}

std::string shapes_hash(const Graph& graph) {
  std::string text;
  for (const graph::Tensor& tensor : graph.tensors)
    text += fmt::format("{} {} {}\n", tensor.name, soybean::to_string(tensor.shape), soybean::to_string(tensor.units));
  for (const graph::Node& node : graph.nodes)
    for (const ops::LoopIndex& index : ops::form(graph, node).indices) text += fmt::format("{} ", index.count);
  return to_hex(hash_text(text));
}

Json key_of(const Graph& graph, const tiling::Mesh& mesh) {
  return {{"format", format_version},
          {"microbatches", graph.microbatches},
          {"recompute", std::string(graph::to_string(graph.recompute))},
          {"model", model_hash(graph)},
          {"shapes", shapes_hash(graph)},
          {"precision", std::string(soybean::to_string(graph.precision))},
          {"mesh", to_string(mesh)}};
}

/// What a stale part of the key means.
std::string_view stale_hint(std::string_view part) {
  if (part == "format") return "The file was written by another version of SoyBean";
  if (part == "microbatches") return "The plan is for another train.microbatches";
  if (part == "recompute") return "The plan is for another train.recompute";
  if (part == "model") return "The plan is for another model: its layers or how they are connected have changed";
  if (part == "shapes") return "The plan is for other sizes: the batch or a layer's size has changed";
  if (part == "precision") return "The plan is for another precision";
  return "The plan is for another number of ranks or another order of cuts";
}

/// Finds what the parser's tree does not tell: where the text breaks, and keys given twice.
class Checker : public nlohmann::json_sax<Json> {
public:
  explicit Checker(const std::string& file) : file_(file) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second)
      fail("{}: key \"{}\", got it twice expected it once. Remove one of them.", file_, name);
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception&) override {
    const std::string near = token.substr(token.size() > 40 ? token.size() - 40 : 0);
    fail("{}: JSON text, got something else at character {} (\"{}\") expected a plan file. It may be cut off; make it "
         "anew with soybean_plan --plan-out.",
         file_, position, printable(near));
  }

private:
  static std::string printable(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
    return text;
  }

  const std::string& file_;
  std::vector<std::set<std::string>> keys_;
};

Json parse_json(const std::string& text, const std::string& file) {
  Checker checker(file);
  Json::sax_parse(text, &checker);
  return Json::parse(text);
}

/// Of "2x2x2"; nothing for text that is no mesh.
std::optional<tiling::Mesh> parse_mesh(const std::string& text) {
  tiling::Mesh mesh;
  if (text == "1") return mesh;
  std::int64_t ranks = 1;
  for (const char *at = text.data(), *end = at + text.size();; ++at) {
    int parts = 0;
    const auto [next, code] = std::from_chars(at, end, parts);
    constexpr std::int64_t most = std::int64_t{1} << 20;
    if (code != std::errc() || parts < 2 || parts > most / ranks) return std::nullopt;
    ranks *= parts;
    mesh.cuts.push_back(parts);
    if (next == end) return mesh;
    if (*next != 'x') return std::nullopt;
    at = next;
  }
}

class Reader {
public:
  Reader(const std::string& file, const Graph& graph, const tiling::Mesh& mesh) : file_(file), graph_(graph) {
    plan_.strategy = "file";
    plan_.mesh = mesh;
    plan_.choices.resize(graph.nodes.size());
    plan_.stored.assign(graph.tensors.size(), tiling::replicated(mesh));
  }

  Plan read(const std::string& text) {
    const Json root = parse_json(text, file_);
    expect(root, "the file", Json::value_t::object);
    check_keys(root, {"key", "summary", "nodes", "tensors"}, "the file");
    check_key(member(root, "key"));
    read_nodes(member(root, "nodes"));
    read_tensors(member(root, "tensors"));
    derive_stored(graph_, plan_);
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      const std::string objection = objection_to_tensor(graph_, plan_, static_cast<TensorId>(t));
      if (!objection.empty())
        fail("{}: tensor '{}' of layer '{}', got a plan in which it {} expected a legal one. Mend its entry under "
             "\"tensors\" or its nodes' under \"nodes\".",
             file_, graph_.tensors[t].name, layer_of(static_cast<TensorId>(t)), objection);
    }
    evaluate(graph_, plan_);
    return std::move(plan_);
  }

private:
  static std::string_view type_name(Json::value_t type) {
    switch (type) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "an integer";
    default:
      return "something else";
    }
  }

  void expect(const Json& value, std::string_view what, Json::value_t type) const {
    const bool integer = type == Json::value_t::number_integer && value.is_number_integer();
    if (value.type() != type && !integer)
      fail("{}: {}, got {} expected {}.", file_, what, type_name(value.type()), type_name(type));
  }

  const Json& member(const Json& object, const std::string& key) const {
    const auto found = object.find(key);
    if (found == object.end()) fail("{}: key \"{}\", got none expected one. It is not a whole plan file.", file_, key);
    return *found;
  }

  void check_keys(const Json& object, const std::vector<std::string>& known, std::string_view what) const {
    for (const auto& item : object.items())
      if (std::find(known.begin(), known.end(), item.key()) == known.end())
        fail("{}: key of {}, got \"{}\" expected one of {}. {}", file_, what, item.key(), fmt::join(known, ", "),
             config::suggestion(item.key(), known));
  }

  void check_key(const Json& key) const {
    expect(key, "\"key\"", Json::value_t::object);
    const Json wanted = key_of(graph_, plan_.mesh);
    for (const auto& expected : wanted.items()) {
      const bool is_savings = expected.key() == "microbatches" || expected.key() == "recompute";
      if (is_savings && !key.contains(expected.key())) continue; // of older files the hash tells
      const Json& got = member(key, expected.key());
      expect(got, fmt::format("\"key\".\"{}\"", expected.key()),
             expected.value().is_string() ? Json::value_t::string : Json::value_t::number_integer);
      if (got != expected.value())
        fail("{}: key \"{}\" of the plan, got {} expected {}. {}; make the plan anew.", file_, expected.key(),
             got.dump(), expected.value().dump(), stale_hint(expected.key()));
    }
  }

  void read_nodes(const Json& nodes) {
    expect(nodes, "\"nodes\"", Json::value_t::object);
    std::vector<std::string> known;
    for (const graph::Node& node : graph_.nodes)
      if (node.twin == graph::none) known.push_back(node.name);
    for (const auto& item : nodes.items())
      if (std::find(known.begin(), known.end(), item.key()) == known.end())
        fail("{}: node, got \"{}\" expected one of the model's that is decided for itself. {}", file_, item.key(),
             hint_nearest(item.key(), known));
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const graph::Node& node = graph_.nodes[n];
      plan_.choices[n] =
          node.twin != graph::none ? plan_.choices[node.twin] : read_choices(static_cast<NodeId>(n), nodes);
    }
  }

  static std::string hint_nearest(const std::string& name, const std::vector<std::string>& known) {
    const std::string meant = config::nearest(name, known);
    return meant.empty() ? "Remove it." : fmt::format("Did you mean \"{}\"?", meant);
  }

  std::vector<ops::Choice> read_choices(NodeId n, const Json& nodes) const {
    const graph::Node& node = graph_.nodes[n];
    const std::string where = node.layer == graph::none
                                  ? fmt::format("node \"{}\"", node.name)
                                  : fmt::format("node \"{}\" of layer '{}'", node.name, graph_.layers[node.layer].name);
    const auto found = nodes.find(node.name);
    if (found == nodes.end()) fail("{}: {}, got no entry expected its choices, one per cut.", file_, where);
    expect(*found, where, Json::value_t::array);
    if (found->size() != plan_.mesh.cuts.size())
      fail("{}: {}, got {} choices expected {}, one per cut of the mesh {}.", file_, where, found->size(),
           plan_.mesh.cuts.size(), to_string(plan_.mesh));
    const ops::Form form = ops::form(graph_, node);
    const std::vector<ops::Choice> allowed = ops::allowed_choices(form);
    std::vector<std::string> names;
    names.reserve(allowed.size());
    for (ops::Choice choice : allowed) names.push_back(ops::to_string(form, choice));
    std::vector<ops::Choice> choices;
    for (const Json& entry : *found) {
      expect(entry, "a choice of " + where, Json::value_t::string);
      const auto at = std::find(names.begin(), names.end(), entry.get<std::string>());
      if (at == names.end())
        fail("{}: {}, got \"{}\" expected one of {}. These are what operator {} ({}) can do on a cut.", file_, where,
             entry.get<std::string>(), fmt::join(names, ", "), node.op, to_string(form));
      choices.push_back(allowed[static_cast<std::size_t>(at - names.begin())]);
    }
    return choices;
  }

  void read_tensors(const Json& tensors) {
    expect(tensors, "\"tensors\"", Json::value_t::object);
    std::vector<std::string> known;
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t)
      if (is_decided(graph_, static_cast<TensorId>(t))) known.push_back(graph_.tensors[t].name);
    for (const auto& item : tensors.items())
      if (std::find(known.begin(), known.end(), item.key()) == known.end())
        fail("{}: tensor, got \"{}\" expected one of the model's that is stored. {}", file_, item.key(),
             hint_nearest(item.key(), known));
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (!is_decided(graph_, static_cast<TensorId>(t))) continue;
      const graph::Tensor& tensor = graph_.tensors[t];
      const std::string what =
          fmt::format("tensor \"{}\" of layer '{}'", tensor.name, layer_of(static_cast<TensorId>(t)));
      const auto found = tensors.find(tensor.name);
      if (found == tensors.end()) fail("{}: {}, got no entry expected its stored tiling.", file_, what);
      expect(*found, what, Json::value_t::string);
      const std::string where = fmt::format("{}: {}", file_, what);
      // Of a flattened tensor nothing but whole channels can be meant.
      const Shape units = tensor.spatial > 1 && tensor.shape.size() == 2 ? tensor.units : Shape{};
      tiling::Tiling tiling = tiling::parse_tiling(found->get<std::string>(), where, units);
      tiling::check(tiling, tensor.shape, plan_.mesh, where);
      if (const std::string wanted = objection_to_channels(tensor, tiling, plan_.mesh); !wanted.empty())
        fail("{}, got {} expected {}.", where, found->get<std::string>(), wanted);
      plan_.stored[t] = tiling::normalise(std::move(tiling), tensor.shape, plan_.mesh);
    }
  }

  std::string layer_of(TensorId id) const {
    const graph::Tensor& tensor = graph_.tensors[id];
    const NodeId node = tensor.producer != graph::none ? tensor.producer
                        : tensor.consumers.empty()     ? graph::none
                                                       : tensor.consumers[0];
    if (node == graph::none || graph_.nodes[node].layer == graph::none) return graph_.name;
    return graph_.layers[graph_.nodes[node].layer].name;
  }

  const std::string& file_;
  const Graph& graph_;
  Plan plan_;
};

} // namespace

std::string plan_text(const Graph& graph, const Plan& plan) {
  Json nodes = Json::object(), tensors = Json::object();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].twin != graph::none) continue;
    const ops::Form form = ops::form(graph, graph.nodes[n]);
    Json choices = Json::array();
    for (ops::Choice choice : plan.choices[n]) choices.push_back(ops::to_string(form, choice));
    nodes[graph.nodes[n].name] = std::move(choices);
  }
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (is_decided(graph, static_cast<TensorId>(t))) tensors[graph.tensors[t].name] = tiling::to_string(plan.stored[t]);
  // One line per node and tensor, so that two plans can be compared with diff.
  std::string text = fmt::format("{{\n  \"key\": {},\n", key_of(graph, plan.mesh).dump());
  const Json summary = {{"model", graph.name},
                        {"ranks", tiling::ranks(plan.mesh)},
                        {"strategy", plan.strategy},
                        {"status", std::string(to_string(plan.status))},
                        {"bytes", plan.bytes}};
  text += fmt::format("  \"summary\": {},\n", summary.dump());
  const auto lines = [&](std::string_view name, const Json& object, std::string_view end) {
    text += fmt::format("  \"{}\": {{", name);
    std::string_view separator = "\n";
    for (const auto& item : object.items()) {
      text += fmt::format("{}    {}: {}", separator, Json(item.key()).dump(), item.value().dump());
      separator = ",\n";
    }
    text += fmt::format("\n  }}{}\n", end);
  };
  lines("nodes", nodes, ",");
  lines("tensors", tensors, "");
  return text + "}\n";
}

Plan parse_plan(const std::string& text, const std::string& file, const Graph& graph, const tiling::Mesh& mesh) {
  return Reader(file, graph, mesh).read(text);
}

tiling::Mesh planned_mesh(const std::string& text, const std::string& file) {
  const Json root = parse_json(text, file);
  const Json mesh = root.is_object() ? root.value(Json::json_pointer("/key/mesh"), Json(nullptr)) : Json(nullptr);
  if (!mesh.is_string())
    fail("{}: key \"mesh\" of the plan, got none expected the parts of each cut. It is not a whole plan file.", file);
  const std::optional<tiling::Mesh> found = parse_mesh(mesh.get<std::string>());
  if (!found)
    fail("{}: key \"mesh\" of the plan, got {} expected the parts of each cut, such as \"2x2x2\".", file, mesh.dump());
  return *found;
}

Savings planned_savings(const std::string& text, const std::string& file, const Savings& given, std::int64_t batch) {
  const Json root = parse_json(text, file);
  const Json key = root.is_object() ? root.value("key", Json::object()) : Json::object();
  Savings savings{1, graph::Recompute::none};
  if (key.is_object()) { // what is wrong with it is said where it is read
    const Json parts = key.value("microbatches", Json(1)), kind = key.value("recompute", Json("none"));
    if (parts.is_number_integer()) savings.microbatches = std::max<std::int64_t>(parts.get<std::int64_t>(), 1);
    for (const graph::Recompute recompute : {graph::Recompute::cheap, graph::Recompute::segments})
      if (kind == Json(std::string(graph::to_string(recompute)))) savings.recompute = recompute;
  }
  if (given.microbatches > 0) savings.microbatches = given.microbatches;
  if (batch % savings.microbatches != 0)
    fail("{}: key \"microbatches\" of the plan, got {} expected a divisor of data.batch, {}. The plan is for another "
         "batch; make the plan anew.",
         file, savings.microbatches, batch);
  if (given.recompute) savings.recompute = given.recompute;
  return savings;
}

} // namespace soybean::plan
