#include "plan/pins.hpp"

#include "base/error.hpp"
#include "config/table.hpp"
#include "plan/legality.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace soybean::plan {
namespace {

using graph::TensorId;
using tiling::Tiling;

TensorId find_pinned(const graph::Graph& graph, const std::string& name, const std::string& where) {
  const TensorId id = graph::find_tensor(graph, name);
  if (id != graph::none) return graph.tensors[id].previous == graph::none ? id : graph.tensors[id].previous;
  std::vector<std::string> known;
  for (const graph::Tensor& tensor : graph.tensors)
    if (tensor.previous == graph::none) known.push_back(tensor.name);
  const std::string meant = config::nearest(name, known);
  fail("{}: name of a tensor, got \"{}\" expected one of the model's. {}", where, name,
       meant.empty() ? "Parameters are called <layer>.weight and <layer>.bias, outputs like their layer."
                     : fmt::format("Did you mean \"{}\"?", meant));
}

/// What the strategy wants of a stored tiling but the pin does not do; empty if all is well.
std::string conflict(const Rules& rules, const Model& model, TensorId id, const Tiling& tiling) {
  const std::vector<tiling::Entry>& entries = rules.entries[id];
  if (entries == model.entries[id]) return "";
  const auto among = [](const std::vector<tiling::Entry>& list, tiling::Kind kind, int dim) {
    return std::any_of(list.begin(), list.end(),
                       [&](const tiling::Entry& e) { return e.kind == kind && (dim < 0 || e.dim == dim); });
  };
  const auto allowed = [&](tiling::Kind kind, int dim) { return among(entries, kind, dim); };
  for (const tiling::Entry& entry : tiling) {
    if (entry.kind == tiling::Kind::replicate && !allowed(entry.kind, -1)) return "split on every cut";
    if (entry.kind == tiling::Kind::split && !allowed(entry.kind, -1)) return "replicated on every cut";
    if (entry.kind != tiling::Kind::split || allowed(entry.kind, entry.dim)) continue;
    if (!among(model.entries[id], entry.kind, entry.dim)) continue; // none of its nodes splits it
    return entry.dim == model.batch_dim[id] ? "not split over the batch" : "not split over rows or columns of images";
  }
  return "";
}

} // namespace

Pins parse_pins(const Model& model, const tiling::Mesh& mesh, const Options& options) {
  const graph::Graph& graph = *model.graph;
  const Rules rules = make_rules(model, options.strategy);
  Pins pins;
  for (const auto& [name, text] : options.pins) {
    const std::string where = fmt::format("{}.\"{}\"", options.pins_where, name);
    const TensorId id = find_pinned(graph, name, options.pins_where);
    const graph::Tensor& tensor = graph.tensors[id];
    Tiling tiling = tiling::parse_tiling(text, where, tensor.units);
    tiling::check(tiling, tensor.shape, mesh, where);
    if (const std::string channels = objection_to_channels(tensor, tiling, mesh); !channels.empty())
      fail("{}: stored tiling, got {} expected {}.", where, text, channels);
    if (tiling::has_partial(tiling))
      fail("{}: stored tiling, got {} expected split or replicate on each cut. A partial sum is never stored.", where,
           text);
    if (is_free_source(tensor) || graph::is_control(tensor.role) ||
        (tensor.consumers.empty() && tensor.next == graph::none))
      fail("{}: pinned tensor, got one of role {} expected one that is stored. It is read or made in whatever tiling "
           "its nodes use, so there is nothing to pin.",
           where, graph::to_string(tensor.role));
    const std::string wanted = conflict(rules, model, id, tiling);
    if (!wanted.empty())
      fail("{}: stored tiling, got {} expected one that strategy \"{}\" allows: {}. Use strategy \"auto\" or drop the "
           "pin.",
           where, text, options.strategy, wanted);
    pins[id] = tiling::normalise(std::move(tiling), tensor.shape, mesh);
  }
  return pins;
}

void fail_pins(const Options& options) {
  std::vector<std::string> names;
  names.reserve(options.pins.size());
  for (const auto& pin : options.pins) names.push_back(pin.first);
  ensure(!names.empty(), "no plan at all under strategy " + options.strategy);
  fail("{}: pinned tensors, got {} expected some plan of strategy \"{}\" that stores them so. Drop one of the pins.",
       options.pins_where, fmt::join(names, ", "), options.strategy);
}

} // namespace soybean::plan
