#include "frontend/toml.hpp"

#include "base/error.hpp"
#include "config/options.hpp"
#include "frontend/layers.hpp"
#include "ops/layers.hpp"
#include "ops/losses.hpp"
#include "ops/sequence_layers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace soybean::frontend {

namespace {

using config::required;
using config::Table;
using graph::TensorId;

constexpr std::size_t most_layers = 10'000; ///< an endless repeat is a mistake, not a model

/// Runs `f`; puts the place in the file before errors of shape, which name only the layer.
template<class F>
auto at(const std::string& where, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", where, error.what()), error.code());
  }
}

/// Builds layer after layer. Layers name each other through `results_`.
class Builder {
public:
  Builder(graph::Graph& graph, ModelOptions model) : graph_(graph), model_(model) {}

  void add_input(TensorId input) {
    last_ = input;
    results_["input"] = input;
  }
  TensorId last() const { return last_; }
  const std::map<std::string, std::string>& places() const { return places_; }
  /// The result of the layer that `key` of a table names.
  TensorId result_of(const Table& table, std::string_view key, const std::string& name) const {
    const auto found = results_.find(name);
    if (found != results_.end()) return found->second;
    std::vector<std::string> known;
    known.reserve(results_.size());
    for (const auto& [earlier, result] : results_) known.push_back(earlier);
    const std::string meant = config::nearest(name, known);
    table.reject(key, "names of earlier layers",
                 fmt::format("there is no '{}' before this layer{}", name,
                             meant.empty() ? "" : fmt::format(". did you mean '{}'?", meant)));
  }
  /// Gives out a name: the table's, checked; else `<op>_<n>`, n counting the layers of that op from 1.
  std::string name_of(const Table& table, const std::string& op) {
    const std::int64_t n = ++counts_[op];
    if (!table.has("name")) {
      std::string name = fmt::format("{}_{}", op, n);
      while (names_.contains(name)) name = fmt::format("{}_{}", op, ++counts_[op]);
      names_.insert(name);
      return name;
    }
    const std::string name = table.text("name", required);
    const bool good =
        !name.empty() && name.front() != '.' && name.back() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                 c == '.';
        });
    if (!good) table.reject("name", "letters, digits, '_', '-' and '.'");
    for (std::string_view reserved :
         {"input", "labels", "partner_labels", "shares", "targets", "sample_weights", "hyper", "loss"})
      if (name == reserved) table.reject("name", "another name", fmt::format("'{}' is reserved", name));
    if (names_.contains(name))
      table.reject("name", "a name no other layer has", "layers inside a repeat are best left unnamed");
    names_.insert(name);
    return name;
  }

  void add_layers(const Table& parent, std::string_view key) {
    const std::vector<Table> layers = parent.tables(key);
    if (layers.empty()) parent.reject(key, "at least one layer");
    add_all(layers);
  }

  /// A result nobody uses is a mistake in some `inputs`.
  void expect_all_used() const {
    for (const auto& [name, place] : places_) {
      const TensorId result = results_.at(name);
      if (result != last_ && graph_.tensors[result].consumers.empty())
        fail(
            "{}: layer '{}', got no layer that uses it expected one. name it in the inputs of a later layer, or remove "
            "it",
            place, name);
    }
  }

private:
  void add_all(const std::vector<Table>& layers) {
    for (const Table& layer : layers) {
      if (layer.has("repeat"))
        add_repeated(layer);
      else
        add_layer(layer);
    }
  }

  void add_repeated(const Table& table) {
    const std::int64_t times = table.integer("repeat", required, {.low = 1, .high = most_layers});
    if (table.has("op")) table.reject("repeat", "no op beside it", "put the layer into `layers`");
    for (std::int64_t i = 0; i < times; ++i) add_layers(table, "layers");
  }

  void add_layer(const Table& table) {
    if (results_.size() > most_layers) fail("{}: layers, got more than {} expected fewer", table.where(), most_layers);
    const std::string op = table.text("op", required);
    const std::string name = name_of(table, op);
    const std::string activation = takes_activation(op) ? read_activation(table) : "";
    const std::size_t first = graph_.layers.size();
    TensorId result = op == "residual" ? add_residual(table, name) : add_plain(table, op, name);
    read_training(table, op, first);
    if (!activation.empty()) result = at(table.where(), [&] { return ops::activate(graph_, activation, result); });
    results_[name] = result;
    places_[name] = table.where();
    last_ = result;
  }

  /// How the parameters of the layers from `first` on are trained: a layer's own, or those of a block's body, whose
  /// layers may say more.
  void read_training(const Table& table, const std::string& op, std::size_t first) {
    bool some = false;
    for (const graph::Tensor& tensor : graph_.tensors)
      for (graph::NodeId user : tensor.consumers)
        some |= tensor.role == graph::Role::parameter && graph_.nodes[user].layer >= static_cast<std::int32_t>(first);
    if (!some) return refuse_training(table, op);
    const double scale = table.real("lr_scale", 1);
    if (scale <= 0) table.reject("lr_scale", "a number above 0", "frozen = true leaves the parameters as they are");
    const double decay = table.real("weight_decay", 0);
    if (decay < 0) table.reject("weight_decay", "at least 0");
    const bool frozen = table.boolean("frozen", false);
    for (std::size_t layer = first; layer < graph_.layers.size(); ++layer) {
      graph::Layer& trained = graph_.layers[layer];
      trained.lr_scale *= scale;
      if (table.has("weight_decay") && !trained.weight_decay) trained.weight_decay = decay;
      trained.frozen |= frozen;
    }
  }

  static void refuse_training(const Table& table, const std::string& op) {
    for (const std::string& key : table.keys()) // which else stay unknown
      if (key == "lr_scale" || key == "weight_decay" || key == "frozen")
        table.reject(key, "no such key", fmt::format("this {} has no parameters to train", op));
  }

  TensorId add_plain(const Table& table, const std::string& op, const std::string& name) {
    const LayerKind* kind = find_kind(op);
    if (!kind) reject_op(table, op);
    const bool branches = kind->most_inputs > 1 && table.has("branches");
    const std::vector<TensorId> inputs = branches ? add_branches(table) : inputs_of(table);
    const auto count_is = [&](std::string_view expected) {
      fail("{}: layer '{}' ({}), got {} input{} expected {}. name them: inputs = [\"a\", \"b\"]", table.where(), name,
           op, inputs.size(), inputs.size() == 1 ? "" : "s", expected);
    };
    const bool exactly = kind->least_inputs == kind->most_inputs;
    if (inputs.size() < kind->least_inputs)
      count_is(fmt::format("{}{}", exactly ? "" : "at least ", kind->least_inputs));
    if (inputs.size() > kind->most_inputs) count_is(fmt::format("{}", kind->most_inputs));
    const Append append = kind->read(table, model_);
    return at(table.where(), [&] { return append(graph_, name, inputs); });
  }

  /// What comes out of each list of layers, all beginning with this layer's input; of an empty list the input itself.
  std::vector<TensorId> add_branches(const Table& table) {
    if (table.has("inputs")) table.reject("inputs", "either inputs or branches", "remove one of them");
    const TensorId from = inputs_of(table)[0];
    std::vector<TensorId> results;
    for (const std::vector<Table>& branch : table.table_lists("branches")) {
      last_ = from;
      add_all(branch);
      results.push_back(last_);
    }
    return results;
  }

  /// body(x) added to x, or to shortcut(x). Layers that name no input take x (the first of each) or the one before.
  TensorId add_residual(const Table& table, const std::string& name) {
    const std::vector<TensorId> inputs = inputs_of(table);
    if (inputs.size() != 1)
      fail("{}: layer '{}' (residual), got {} inputs expected 1", table.where(), name, inputs.size());
    TensorId shortcut = last_ = inputs[0];
    if (table.has("shortcut")) {
      add_layers(table, "shortcut");
      shortcut = std::exchange(last_, inputs[0]);
    }
    add_layers(table, "body");
    return at(table.where(), [&] { return ops::add_layer(graph_, name, {shortcut, last_}); });
  }

  std::vector<TensorId> inputs_of(const Table& table) const {
    if (table.has("input") && table.has("inputs"))
      table.reject("input", "either input or inputs", "remove one of them");
    if (table.has("input")) return {result_of(table, "input", table.text("input", required))};
    if (!table.has("inputs")) return {last_};
    std::vector<TensorId> inputs;
    for (const std::string& name : table.texts("inputs", required)) inputs.push_back(result_of(table, "inputs", name));
    return inputs;
  }

  static const LayerKind* find_kind(std::string_view op) {
    for (const LayerKind& kind : layer_kinds())
      if (kind.op == op) return &kind;
    return nullptr;
  }

  static bool takes_activation(std::string_view op) {
    const LayerKind* kind = find_kind(op);
    return op == "residual" || (kind && kind->activation);
  }

  [[noreturn]] static void reject_op(const Table& table, const std::string& op) {
    const std::vector<std::string>& later = later_layers();
    if (std::find(later.begin(), later.end(), op) != later.end())
      table.reject("op", "a layer that is built", fmt::format("\"{}\" is not supported yet", op));
    std::vector<std::string> known = {"residual"};
    for (const LayerKind& kind : layer_kinds()) known.emplace_back(kind.op);
    table.reject("op", "a kind of layer", config::suggestion(op, known));
  }

  graph::Graph& graph_;
  ModelOptions model_;
  TensorId last_ = graph::none;
  std::map<std::string, TensorId> results_;
  std::map<std::string, std::string> places_;
  std::set<std::string> names_; ///< given out; results_ lacks those of blocks still open
  std::map<std::string, std::int64_t> counts_;
};

/// What the model is trained for: key `loss`, a word or a table, or `losses`, a list of tables.
class Losses {
public:
  explicit Losses(const Table& model) : model_(model) {
    if (model.has("losses")) {
      if (model.has("loss")) model.reject("losses", "either loss or losses", "remove one of them");
      tables_ = model.tables("losses");
      if (tables_.empty()) model.reject("losses", "at least one loss");
    } else if (model.has_table("loss")) {
      tables_.push_back(model.table("loss"));
    } else {
      terms_.push_back({.op = model.word("loss", required, words())});
    }
    for (const Table& table : tables_) terms_.push_back(read(table));
    if (!model.has("top_k")) return;
    top_k_ = model.integer("top_k", required, {.low = 2});
    if (std::none_of(terms_.begin(), terms_.end(), [](const auto& t) { return t.op == "softmax_cross_entropy"; }))
      model.reject("top_k", "a loss of classes with it", "use loss = \"softmax_cross_entropy\"");
  }

  /// Appends them after the layers. Without key `input` a loss is of the last layer's result.
  void add(graph::Graph& graph, Builder& builder, bool mixed) {
    const bool several = model_.has("losses");
    if (!several) builder.expect_all_used();
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      ops::LossTerm& term = terms_[i];
      term.input = builder.last();
      if (several && tables_[i].has("input"))
        term.input = builder.result_of(tables_[i], "input", tables_[i].text("input", required));
      if (several) term.name = builder.name_of(tables_[i], "loss");
    }
    if (top_k_ > 0 && terms_[0].op != "softmax_cross_entropy")
      model_.reject("top_k", "the main loss to be one of classes", "that is the first of the list");
    at(several ? model_.where("losses") : model_.where("loss"),
       [&] { ops::add_losses(graph, {.terms = terms_, .top_k = top_k_, .mixed = mixed}); });
    if (several) builder.expect_all_used();
  }

private:
  static config::Words words() { return {.now = {"softmax_cross_entropy", "mse", "binary_cross_entropy"}}; }

  ops::LossTerm read(const Table& table) const {
    ops::LossTerm term{.op = table.word("op", required, words())};
    const bool classes = term.op == "softmax_cross_entropy";
    if (model_.has("losses")) {
      table.known({"input", "weight", "name"});
      term.weight = table.real("weight", 1.0);
      if (term.weight <= 0) table.reject("weight", "more than 0", "leave out a loss that does not count");
    }
    if (classes) {
      term.label_smoothing = table.real("label_smoothing", 0.0);
      if (term.label_smoothing < 0 || term.label_smoothing > 1) table.reject("label_smoothing", "between 0 and 1");
    } else {
      const std::string target = table.word("target", "labels", {.now = {"labels", "input", "targets"}});
      term.against = target == "input"     ? ops::Against::samples
                     : target == "targets" ? ops::Against::targets
                                           : ops::Against::labels;
    }
    return term;
  }

  Table model_;
  std::vector<Table> tables_;
  std::vector<ops::LossTerm> terms_;
  std::int64_t top_k_ = 0;
};

} // namespace

graph::Graph build_graph(const Table& model, std::int64_t batch, DType precision, std::uint64_t seed, bool mixed,
                         std::map<std::string, std::string>* places) {
  model.known({"name", "input", "vocabulary", "layers", "loss", "losses", "top_k", "bias", "init", "init_std"});
  graph::Graph graph{.name = config::model_name(model), .precision = precision};
  const Shape sample = model.integers("input", required, {.low = 1});
  if (sample.size() != 1 && sample.size() != 3) model.reject("input", "[features] or [channels, height, width]");
  const bool tokens = model.has("vocabulary");
  if (tokens && sample.size() != 1) model.reject("input", "[positions], the length of sequences of tokens");
  Builder builder(graph, {.bias = model.boolean("bias", true),
                          .init = read_init(model, ops::Scheme::standard),
                          .sequences = tokens,
                          .seed = seed});
  Losses losses(model);
  if (tokens) {
    const std::int64_t vocabulary = model.integer("vocabulary", required, {.low = 1});
    at(model.where("vocabulary"),
       [&] { builder.add_input(ops::tokens_source(graph, batch, {.length = sample[0], .vocabulary = vocabulary})); });
  } else {
    at(model.where("input"), [&] { builder.add_input(ops::input_source(graph, batch, sample)); });
  }
  builder.add_layers(model, "layers");
  losses.add(graph, builder, mixed);
  if (places) *places = builder.places();
  graph::verify(graph);
  return graph;
}

} // namespace soybean::frontend
