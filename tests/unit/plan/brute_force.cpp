#include "unit/plan/brute_force.hpp"

#include "base/error.hpp"
#include "ops/operator.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace soybean::test {
namespace {

using graph::NodeId;
using graph::Role;
using graph::TensorId;
using tiling::Entry;
using tiling::Kind;
using tiling::Mesh;
using tiling::Tiling;

using Elements = std::vector<bool>; // of a tensor in row-major order

constexpr Price impossible{std::int64_t{1} << 50, 0};

int parts_of(const Mesh& mesh) {
  int p = 1;
  for (int c : mesh.cuts) p *= c;
  return p;
}

/// Which of the ranks along one cut a rank is; the first cut is outermost.
int position(const Mesh& mesh, int rank, std::size_t cut) {
  for (std::size_t c = mesh.cuts.size() - 1; c > cut; --c) rank /= mesh.cuts[c];
  return rank % mesh.cuts[cut];
}

/// Whether the position lies between the first and the last that the block [begin, end) of the other dim needs.
bool needs(const tiling::Halo& halo, std::int64_t extent, std::int64_t at, std::int64_t begin, std::int64_t end) {
  const auto reaches = [&](std::int64_t window, std::int64_t position) {
    const std::int64_t from_first = position - window * halo.stride + halo.padding;
    return from_first >= 0 && from_first % halo.dilation == 0 && from_first / halo.dilation < halo.kernel;
  };
  const bool of_windows = halo.reach == tiling::Reach::positions;
  const std::int64_t windows = halo.reach == tiling::Reach::windows ? extent : halo.other;
  std::int64_t first = extent, last = -1, first_window = windows, last_window = -1;
  for (std::int64_t i = 0; i < windows; ++i)
    for (std::int64_t p = begin; p < end && !of_windows; ++p)
      if (reaches(i, p)) first_window = std::min(first_window, i), last_window = i;
  if (of_windows) first_window = begin, last_window = end - 1;
  if (halo.reach == tiling::Reach::windows) return first_window <= at && at <= last_window;
  for (std::int64_t i = first_window; i <= last_window; ++i)
    for (std::int64_t p = 0; p < extent; ++p)
      if (reaches(i, p)) first = std::min(first, p), last = std::max(last, p);
  return first <= at && at <= last;
}

/// The elements one rank holds (of full-size terms where a cut is partial).
Elements held_by(const Mesh& mesh, const Shape& shape, const Tiling& tiling, int rank) {
  const auto total = static_cast<std::size_t>(volume(shape));
  Elements held(total, true);
  for (std::size_t e = 0; e < total; ++e) {
    std::size_t rest = e;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const auto extent = static_cast<std::size_t>(shape[d]);
      const auto at = static_cast<std::int64_t>(rest % extent);
      rest /= extent;
      std::int64_t blocks = 1, mine = 0, unit = 1;
      tiling::Halo halo;
      for (std::size_t c = 0; c < tiling.size(); ++c) {
        if (tiling[c].kind != Kind::split || tiling[c].dim != static_cast<int>(d)) continue;
        blocks *= mesh.cuts[c];
        mine = mine * mesh.cuts[c] + position(mesh, rank, c);
        unit = tiling[c].unit;
        halo = tiling[c].halo;
      }
      const bool of_other = halo.reach == tiling::Reach::positions || halo.reach == tiling::Reach::windows;
      const std::int64_t cut = of_other ? halo.other : shape[d], units = cut / unit;
      const std::int64_t begin = unit * (mine * units / blocks);
      const std::int64_t end = mine + 1 == blocks ? cut : unit * ((mine + 1) * units / blocks);
      const bool has_it =
          halo.reach == tiling::Reach::none ? at >= begin && at < end : needs(halo, shape[d], at, begin, end);
      if (!has_it) held[e] = false;
    }
  }
  return held;
}

std::int64_t count(const Elements& elements) {
  return std::count(elements.begin(), elements.end(), true);
}

/// One tensor's redistributions, each found by trying all sequences of steps.
class Moves {
public:
  Moves(const Mesh& mesh, const graph::Tensor& tensor) : mesh_(mesh), tensor_(tensor) {}

  const std::vector<Elements>& holding(const Tiling& tiling) {
    auto& all = holdings_[tiling];
    if (all.empty())
      for (int r = 0; r < parts_of(mesh_); ++r) all.push_back(held_by(mesh_, tensor_.shape, tiling, r));
    return all;
  }

  std::int64_t fullest(const Tiling& tiling) {
    std::int64_t most = 0;
    for (const Elements& held : holding(tiling)) most = std::max(most, count(held));
    return most;
  }

  std::int64_t elements(const Tiling& from, const Tiling& to) {
    const auto key = std::pair{from, to};
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    std::int64_t best = tiling::has_partial(from) ? impossible.moved : lacking(from, to);
    for (std::size_t cut = 0; tiling::has_partial(from) && cut < from.size(); ++cut) {
      const bool sum = from[cut].kind == Kind::partial;
      if (from[cut].kind == Kind::split) continue;
      if (sum) best = std::min(best, 2 * reduced(from, cut) + elements(with(from, cut, tiling::replicate()), to));
      for (std::size_t d = 0; d < tensor_.shape.size(); ++d) {
        const std::optional<Tiling> next = split(from, cut, static_cast<int>(d), to);
        if (!next) continue;
        check_partition(from, *next, cut);
        best = std::min(best, (sum ? reduced(from, cut) : 0) + elements(*next, to));
      }
    }
    return known_[key] = best;
  }

private:
  static Tiling with(Tiling tiling, std::size_t cut, const Entry& entry) {
    tiling[cut] = entry;
    return tiling;
  }

  /// `from` with one more cut splitting dim d, unless a later cut splits it.
  std::optional<Tiling> split(const Tiling& from, std::size_t cut, int d, const Tiling& to) const {
    std::int64_t unit = tensor_.units[d];
    for (const Entry& e : to)
      if (e.kind == Kind::split && e.dim == d) unit = e.unit;
    for (std::size_t c = 0; c < from.size(); ++c) {
      if (from[c].kind != Kind::split || from[c].dim != d) continue;
      if (c > cut) return std::nullopt;
      unit = from[c].unit;
    }
    return with(from, cut, tiling::split(d, unit));
  }

  /// Elements received when the ranks along a cut each add up a part of their terms: everyone gets its part from all
  /// others.
  std::int64_t reduced(const Tiling& from, std::size_t cut) {
    std::int64_t received = 0;
    for (int r = 0; r < parts_of(mesh_); ++r)
      if (position(mesh_, r, cut) == 0) received += (mesh_.cuts[cut] - 1) * count(holding(from)[r]);
    return received;
  }

  std::int64_t lacking(const Tiling& from, const Tiling& to) {
    std::int64_t received = 0;
    for (int r = 0; r < parts_of(mesh_); ++r)
      for (std::size_t e = 0; e < holding(to)[r].size(); ++e)
        if (holding(to)[r][e] && !holding(from)[r][e]) ++received;
    return received;
  }

  /// What the ranks along a cut held before is now in exactly one of them each.
  void check_partition(const Tiling& from, const Tiling& to, std::size_t cut) {
    const int ranks = parts_of(mesh_);
    for (int r = 0; r < ranks; ++r)
      for (std::size_t e = 0; e < holding(from)[r].size(); ++e) {
        int holders = 0;
        for (int other = 0; other < ranks; ++other) {
          bool along = true;
          for (std::size_t c = 0; c < mesh_.cuts.size(); ++c)
            along = along && (c == cut || position(mesh_, r, c) == position(mesh_, other, c));
          if (along && holding(to)[other][e]) ++holders;
        }
        ensure(holders == (holding(from)[r][e] ? 1 : 0), "the parts of a sum do not partition it");
      }
  }

  const Mesh& mesh_;
  const graph::Tensor& tensor_;
  std::map<Tiling, std::vector<Elements>> holdings_;
  std::map<std::pair<Tiling, Tiling>, std::int64_t> known_;
};

class Search {
public:
  Search(const graph::Graph& graph, const Mesh& mesh, const Price& limit, const Scope& scope)
      : graph_(graph),
        mesh_(mesh),
        limit_(limit),
        admitted_(scope.admitted),
        images_(scope.images),
        machine_(scope.machine) {
    for (const graph::Tensor& tensor : graph.tensors) moves_.emplace_back(mesh, tensor);
    known_.resize(graph.tensors.size());
    list_values();
    settle();
    list_tensors();
  }

  Cheapest run() {
    value_.assign(values_.size(), 0);
    descend(0, {});
    return result_;
  }

private:
  const ops::OperandTilings& tilings(NodeId n) const {
    return values_[variable_[n]][value_[variable_[n]]].operands.at(n);
  }

  void list_values() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const NodeId twin = graph_.nodes[n].twin;
      if (twin == graph::none) members_.emplace_back();
      variable_.push_back(twin == graph::none ? static_cast<int>(members_.size()) - 1 : variable_[twin]);
      members_[variable_[n]].push_back(static_cast<NodeId>(n));
    }
    for (const std::vector<NodeId>& members : members_) {
      const ops::Form form = ops::form(graph_, graph_.nodes[members[0]]);
      std::vector<std::vector<ops::Choice>> vectors = {{}};
      for (std::size_t cut = 0; cut < mesh_.cuts.size(); ++cut) {
        std::vector<std::vector<ops::Choice>> longer;
        for (const auto& vector : vectors)
          for (ops::Choice choice : ops::allowed_choices(form)) {
            if (!images_ && choice >= 0 && form.indices[choice].spatial) continue;
            longer.push_back(vector);
            longer.back().push_back(choice);
          }
        vectors = std::move(longer);
      }
      std::vector<Value> all, busy;
      for (const auto& vector : vectors) {
        Value value;
        for (NodeId n : members) {
          const graph::Node& node = graph_.nodes[n];
          const ops::Form own = ops::form(graph_, node);
          value.operands[n] = ops::operand_tilings(own, graph_, node, mesh_, vector);
          if (machine_ != nullptr)
            value.computing += std::llround(1e9 * machine::node_seconds(*machine_, graph_, node, own, vector));
        }
        const bool admitted = admitted_ != nullptr && admitted_->choices[members[0]] == vector;
        if (admitted || !leaves_idle(value)) busy.push_back(value);
        all.push_back(std::move(value));
      }
      busy_.push_back(busy);
      all_.push_back(all);
    }
  }

  struct Value {
    std::map<NodeId, ops::OperandTilings> operands;
    std::int64_t computing = 0; ///< nanoseconds
  };

  bool leaves_idle(const Value& value) {
    const auto idle = [&](TensorId t, const Tiling& tiling) {
      const auto& held = moves_[t].holding(tiling);
      return std::any_of(held.begin(), held.end(), [](const Elements& e) { return count(e) == 0; });
    };
    for (const auto& [n, operands] : value.operands) {
      const graph::Node& node = graph_.nodes[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (idle(node.inputs[i], operands.inputs[i])) return true;
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        if (idle(node.outputs[i], operands.outputs[i])) return true;
    }
    return false;
  }

  /// Leaves out values that can only be parts of impossible plans. A node left with none may leave ranks idle.
  void settle() {
    values_ = busy_;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t v = 0; v < values_.size(); ++v) {
        const auto before = values_[v].size();
        std::erase_if(values_[v], [&](const Value& value) { return !deliverable(value); });
        changed = changed || values_[v].size() != before;
      }
      if (changed) continue;
      for (std::size_t v = 0; v < values_.size() && !changed; ++v)
        if (values_[v].empty() && busy_[v].size() < all_[v].size()) changed = true;
      if (!changed) return;
      for (std::size_t v = 0; v < values_.size(); ++v)
        if (values_[v].empty()) busy_[v] = all_[v];
      values_ = busy_;
    }
  }

  /// Each partial sum it takes can be what its tensor's maker makes, for it alone.
  bool deliverable(const Value& value) const {
    for (const auto& [n, operands] : value.operands)
      for (std::size_t i = 0; i < operands.inputs.size(); ++i)
        if (tiling::has_partial(operands.inputs[i]) && !made_for_one(graph_.nodes[n].inputs[i], operands.inputs[i]))
          return false;
    return true;
  }

  bool made_for_one(TensorId t, const Tiling& tiling) const {
    const graph::Tensor& tensor = graph_.tensors[t];
    std::ptrdiff_t uses = 0;
    for (NodeId user : tensor.consumers)
      uses += std::count(graph_.nodes[user].inputs.begin(), graph_.nodes[user].inputs.end(), t);
    if (uses > 1 || tensor.producer == graph::none) return false;
    const std::vector<TensorId>& outputs = graph_.nodes[tensor.producer].outputs;
    const auto at = std::find(outputs.begin(), outputs.end(), t) - outputs.begin();
    const std::vector<Value>& makers = values_[variable_[tensor.producer]];
    return std::any_of(makers.begin(), makers.end(),
                       [&](const Value& maker) { return maker.operands.at(tensor.producer).outputs[at] == tiling; });
  }

  /// Which tensors can be priced once a variable is fixed, those before it being fixed too.
  void list_tensors() {
    priced_after_.resize(values_.size());
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      const graph::Tensor& tensor = graph_.tensors[t];
      if (tensor.previous != graph::none || tensor.role == Role::metric) continue;
      int last = -1;
      for (NodeId n : tensor.consumers) last = std::max(last, variable_[n]);
      if (tensor.producer != graph::none) last = std::max(last, variable_[tensor.producer]);
      if (tensor.next != graph::none) last = std::max(last, variable_[graph_.tensors[tensor.next].producer]);
      if (last >= 0) priced_after_[last].push_back(static_cast<TensorId>(t));
    }
  }

  void descend(std::size_t v, const Price& so_far) {
    ++result_.combinations;
    if (v == values_.size()) {
      result_.found = true;
      result_.price = limit_ = so_far;
      return;
    }
    for (value_[v] = 0; value_[v] < static_cast<int>(values_[v].size()); ++value_[v]) {
      Price price = so_far;
      price.moved += values_[v][value_[v]].computing;
      for (TensorId t : priced_after_[v]) {
        const Price more = tensor_price(t);
        price = {price.moved + more.moved, price.held + more.held};
      }
      if (price < limit_ || (price == limit_ && !result_.found)) descend(v + 1, price);
    }
  }

  Price tensor_price(TensorId t) {
    const graph::Tensor& tensor = graph_.tensors[t];
    const TensorId made = tensor.next == graph::none ? t : tensor.next;
    std::optional<Tiling> produced;
    if (const NodeId p = graph_.tensors[made].producer; p != graph::none)
      for (std::size_t i = 0; i < graph_.nodes[p].outputs.size(); ++i)
        if (graph_.nodes[p].outputs[i] == made) produced = tilings(p).outputs[i];
    std::vector<Tiling> needed; // one per use
    for (NodeId n : tensor.consumers)
      for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i)
        if (graph_.nodes[n].inputs[i] == t) needed.push_back(tilings(n).inputs[i]);
    const auto key = std::pair{produced.value_or(Tiling{}), needed};
    if (const auto known = known_[t].find(key); known != known_[t].end()) return known->second;
    return known_[t][key] = price(t, produced, needed);
  }

  Price price(TensorId t, const std::optional<Tiling>& produced, const std::vector<Tiling>& needed) {
    const graph::Tensor& tensor = graph_.tensors[t];
    const std::int64_t size = size_of(tensor.dtype);
    const bool kept = tensor.role == Role::parameter || tensor.role == Role::state;
    if (needed.empty() && !kept) return {0, 0};
    if (produced && !kept && needed.size() == 1 && needed[0] == *produced && tiling::has_partial(*produced))
      return {0, size * moves_[t].fullest(*produced)};
    const std::set<Tiling> distinct(needed.begin(), needed.end());
    if (std::any_of(distinct.begin(), distinct.end(), tiling::has_partial)) return impossible;
    if (!produced && !kept) {
      Price sum;
      for (const Tiling& need : distinct) sum.held += size * moves_[t].fullest(need);
      return sum;
    }
    Price best = impossible;
    for (const Tiling& stored : all_stored(tensor)) {
      Price sum{produced ? moved(t, *produced, stored) : 0, size * moves_[t].fullest(stored)};
      for (const Tiling& need : distinct) {
        if (need == stored) continue;
        sum.moved += moved(t, stored, need);
        sum.held += size * moves_[t].fullest(need);
      }
      best = std::min(best, sum);
    }
    return best;
  }

  std::int64_t moved(TensorId t, const Tiling& from, const Tiling& to) {
    const graph::Tensor& tensor = graph_.tensors[t];
    if (machine_ == nullptr) return size_of(tensor.dtype) * moves_[t].elements(from, to);
    const machine::StepSeconds seconds = machine::move_seconds(*machine_, tensor, from, to);
    return std::llround(1e9 * (seconds.network + seconds.local));
  }

  std::vector<Tiling> all_stored(const graph::Tensor& tensor) const {
    std::vector<Tiling> list = {{}};
    for (std::size_t cut = 0; cut < mesh_.cuts.size(); ++cut) {
      std::vector<Tiling> longer;
      for (const Tiling& tiling : list)
        for (int d = -1; d < static_cast<int>(tensor.shape.size()); ++d) {
          longer.push_back(tiling);
          longer.back().push_back(d < 0 ? tiling::replicate() : tiling::split(d, tensor.units[d]));
        }
      list = std::move(longer);
    }
    for (Tiling& tiling : list) tiling = tiling::normalise(tiling, tensor.shape, mesh_);
    return list;
  }

  const graph::Graph& graph_;
  const Mesh& mesh_;
  Price limit_;
  const plan::Plan* admitted_;
  bool images_;
  const machine::Setting* machine_;
  std::vector<Moves> moves_; // per tensor
  std::vector<int> variable_, value_;
  std::vector<std::vector<NodeId>> members_;
  std::vector<std::vector<Value>> values_, busy_, all_; // per variable; those without idle ranks; all the form allows
  std::vector<std::vector<TensorId>> priced_after_;
  std::vector<std::map<std::pair<Tiling, std::vector<Tiling>>, Price>> known_; // per tensor
  Cheapest result_;
};

} // namespace

Cheapest brute_force(const graph::Graph& graph, const Mesh& mesh, const Price& limit, const Scope& scope) {
  return Search(graph, mesh, limit, scope).run();
}

std::int64_t brute_force_elements(const Mesh& mesh, const graph::Tensor& tensor, const Tiling& from, const Tiling& to) {
  return Moves(mesh, tensor).elements(from, to);
}

} // namespace soybean::test
