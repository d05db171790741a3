#include "tiling/redistribution.hpp"

#include "base/error.hpp"
#include "tiling/overlap.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>
#include <set>

namespace soybean::tiling {

namespace {

/// What sequences of steps are compared by.
struct Cost {
  std::int64_t elements = 0;
  std::int64_t steps = 0;
  auto operator<=>(const Cost&) const = default;
  Cost operator+(const Cost& other) const { return {elements + other.elements, steps + other.steps}; }
};

/// A tiling on the way, packed: a few bits per cut, 0 for replicate, 1 for partial, 2 + d for split(d). Units follow
/// from the dim (see Search::units_).
using State = std::uint64_t;
using Code = std::uint64_t;
constexpr Code code_replicate = 0, code_partial = 1, code_split = 2;

Code code_of(const Entry& entry) {
  if (entry.kind == Kind::split) return code_split + static_cast<Code>(entry.dim);
  return entry.kind == Kind::partial ? code_partial : code_replicate;
}

struct Visit {
  State state = 0;
  int parent = -1;
  StepKind kind = StepKind::slice; ///< how it was reached from there
  int cut = -1;
  std::int64_t held = 0; ///< elements of the blocks of all ranks together
  Cost so_far;
  Cost bound;         ///< of the whole sequence through here, from below
  bool exact = false; ///< `bound` is this state's own, not just its parent's
};

/// The search for the cheapest steps out of a partial tiling: A* over the tilings reachable by slice, reduce-scatter
/// and all-reduce. Bounds are worked out only when a state comes up (most never do).
///
/// Blocks of a tiling sum to |tensor|·ranks/parts over all ranks, however uneven they are. So the cost of reducing
/// depends only on which cuts end up split, and only the last exchange on the dims; that is what the bound rests on.
class Search {
public:
  Search(const Mesh& mesh, const Moved& tensor, const Tiling& from, const Tiling& to);
  std::int64_t elements() const { return best_.bound.elements; }
  std::vector<Step> steps() const;

private:
  Code code(State state, std::size_t cut) const { return state >> (cut * bits_) & ((Code{1} << bits_) - 1); }
  State with(State state, std::size_t cut, Code code) const {
    return (state & ~(((Code{1} << bits_) - 1) << (cut * bits_))) | code << (cut * bits_);
  }
  std::int64_t unit_for(std::size_t dim) const;
  std::vector<int> preferred_dims() const;
  Tiling tiling_of(State state) const;
  bool partial_left(State state) const;
  bool may_split(State state, std::size_t cut, int dim) const;
  bool may_split(State state, std::size_t cut) const;
  Cost rest(const Visit& visit) const;
  Cost cheapest_rest(const Visit& visit, std::int64_t overlap) const;
  void push(Visit visit);
  void expand(int parent);
  void expand(int parent, std::size_t cut, Code code);
  void run();

  const Mesh& mesh_;
  const Moved& tensor_;
  const Tiling& from_;
  const Tiling& to_;
  unsigned bits_;
  std::int64_t needed_;    ///< elements all ranks must end up with
  Shape units_;            ///< of each dim, once a new cut splits it
  std::vector<int> order_; ///< in which dims are tried
  std::vector<Visit> visits_;
  Visit best_;

  /// Lowest bound first; then the one nearest to the end, then the one found first.
  struct Later {
    const std::vector<Visit>& visits;
    bool operator()(int a, int b) const {
      const Visit &x = visits[static_cast<std::size_t>(a)], &y = visits[static_cast<std::size_t>(b)];
      if (x.bound != y.bound) return x.bound > y.bound;
      if (x.so_far.steps != y.so_far.steps) return x.so_far.steps < y.so_far.steps;
      return a > b;
    }
  };
  std::priority_queue<int, std::vector<int>, Later> open_{Later{visits_}};
};

Search::Search(const Mesh& mesh, const Moved& tensor, const Tiling& from, const Tiling& to)
    : mesh_(mesh),
      tensor_(tensor),
      from_(from),
      to_(to),
      bits_(static_cast<unsigned>(std::bit_width(tensor.shape.size() + 1))),
      needed_(held_elements(mesh, tensor.shape, to)) {
  ensure(bits_ * mesh.cuts.size() <= 64, "mesh of too many cuts");
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) units_.push_back(unit_for(d));
  order_ = preferred_dims();
  visits_.reserve(64);
  run();
}

/// The unit of new splits of a dim: the tensor's, unless that would change the target's blocks, then the target's (its
/// unit may be normalised and so too small for further splits). Where `from` splits the dim already, only if that
/// leaves the blocks it has as they are, and otherwise its own.
std::int64_t Search::unit_for(std::size_t dim) const {
  const auto find = [&](const Tiling& tiling) {
    return std::ranges::find_if(
        tiling, [&](const Entry& e) { return e.kind == Kind::split && e.dim == static_cast<std::int32_t>(dim); });
  };
  const auto keeps_blocks = [&](Tiling tiling, std::int64_t unit) {
    const Tiling before = tiling;
    for (Entry& e : tiling)
      if (e.kind == Kind::split && e.dim == static_cast<std::int32_t>(dim)) e.unit = unit;
    return normalise(tiling, tensor_.shape, mesh_) == before;
  };
  const auto target = find(to_), own = find(from_);
  std::int64_t wanted = tensor_.units.empty() ? 1 : tensor_.units[dim];
  if (target != to_.end() && !keeps_blocks(to_, wanted)) wanted = target->unit;
  return own == from_.end() || keeps_blocks(from_, wanted) ? wanted : own->unit;
}

/// Dims that can be cut into a block for each rank, in their order; then the others, finest first.
std::vector<int> Search::preferred_dims() const {
  const std::int64_t enough = ranks(mesh_);
  const auto blocks = [&](int dim) {
    const auto d = static_cast<std::size_t>(dim);
    return std::min(enough, tensor_.shape[d] / units_[d]);
  };
  std::vector<int> dims(tensor_.shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  std::ranges::stable_sort(dims, [&](int a, int b) { return blocks(a) > blocks(b); });
  return dims;
}

Tiling Search::tiling_of(State state) const {
  Tiling tiling = from_;
  std::uint64_t fresh = 0; // dims split anew
  for (std::size_t cut = 0; cut < tiling.size(); ++cut) {
    const Code c = code(state, cut);
    if (c == code_of(tiling[cut])) continue;
    tiling[cut] = c < code_split ? replicate() : split(static_cast<int>(c - code_split));
    if (c >= code_split) fresh |= std::uint64_t{1} << (c - code_split);
  }
  if (fresh == 0) return tiling;
  for (Entry& entry : tiling)
    if (entry.kind == Kind::split && (fresh >> entry.dim & 1) != 0)
      entry.unit = units_[static_cast<std::size_t>(entry.dim)];
  return tiling;
}

bool Search::partial_left(State state) const {
  for (std::size_t cut = 0; cut < from_.size(); ++cut)
    if (code(state, cut) == code_partial) return true;
  return false;
}

bool Search::may_split(State state, std::size_t cut, int dim) const {
  for (std::size_t later = cut + 1; later < from_.size(); ++later)
    if (code(state, later) == code_split + static_cast<Code>(dim)) return false;
  return true;
}

bool Search::may_split(State state, std::size_t cut) const {
  return std::ranges::any_of(order_, [&](int dim) { return may_split(state, cut, dim); });
}

/// What is still to come after a state, from below; exact when nothing is partial any more.
Cost Search::rest(const Visit& visit) const {
  const Tiling tiling = tiling_of(visit.state);
  const std::int64_t common = overlap(mesh_, tensor_.shape, tiling, to_);
  if (partial_left(visit.state)) return cheapest_rest(visit, common);
  const std::int64_t lacking = needed_ - common;
  const bool done = lacking == 0 && normalise(tiling, tensor_.shape, mesh_) == to_;
  return {lacking, done ? 0 : 1};
}

/// Takes the best of all ways to slice, reduce-scatter and all-reduce the cuts that are left, as if slices could always
/// come first, all-reduces last, and as much as possible of what is held then were needed. Cuts of equal parts are
/// alike here, so only their numbers matter.
Cost Search::cheapest_rest(const Visit& visit, std::int64_t overlap) const {
  struct Group {
    int parts;
    bool partial, splittable;
    int count = 0, split = 0; ///< cuts in it, and how many of them are split
  };
  std::vector<Group> groups;
  groups.reserve(from_.size());
  for (std::size_t cut = 0; cut < from_.size(); ++cut) {
    const Code c = code(visit.state, cut);
    const bool splittable = c < code_split && may_split(visit.state, cut);
    if (c >= code_split || (c == code_replicate && !splittable)) continue;
    const Group group{mesh_.cuts[cut], c == code_partial, splittable};
    auto same = std::ranges::find_if(groups, [&](const Group& g) {
      return g.parts == group.parts && g.partial == group.partial && g.splittable == group.splittable;
    });
    if (same == groups.end()) same = groups.insert(groups.end(), group);
    ++same->count;
  }
  Cost best{-1, 0};
  for (bool more = true; more;) {
    std::int64_t sliced = visit.held, left = visit.held, steps = 0;
    for (const Group& g : groups)
      for (int k = 0; k < g.split; ++k) {
        left /= g.parts;
        if (!g.partial) sliced /= g.parts;
      }
    std::int64_t elements = sliced - left; // reduce-scatters add up to what they take away
    for (const Group& g : groups) {
      steps += g.partial ? g.count : g.split;
      if (g.partial) elements += 2 * (left / g.parts) * (g.parts - 1) * (g.count - g.split);
    }
    const std::int64_t lacking = needed_ - std::min(left, overlap);
    const Cost cost{elements + lacking, steps + (lacking > 0)};
    if (best.elements < 0 || cost < best) best = cost;
    more = false; // count the splits up
    for (Group& g : groups) {
      if (!g.splittable) continue;
      more = g.split < g.count;
      g.split = more ? g.split + 1 : 0;
      if (more) break;
    }
  }
  return best;
}

void Search::push(Visit visit) {
  visits_.push_back(visit);
  open_.push(static_cast<int>(visits_.size()) - 1);
}

void Search::expand(int parent, std::size_t cut, Code to) {
  const Visit from = visits_[static_cast<std::size_t>(parent)];
  const int parts = mesh_.cuts[cut];
  const bool partial = code(from.state, cut) == code_partial, splits = to >= code_split;
  Visit next = from;
  next.state = with(from.state, cut, to);
  next.parent = parent;
  next.kind = !partial ? StepKind::slice : splits ? StepKind::reduce_scatter : StepKind::all_reduce;
  next.cut = static_cast<int>(cut);
  next.exact = false;
  if (splits) next.held = from.held / parts;
  const std::int64_t received = (parts - 1) * (from.held / parts);
  next.so_far.elements += !partial ? 0 : splits ? received : 2 * received;
  next.so_far.steps += 1;
  next.bound = std::max(from.bound, next.so_far);
  push(next);
}

void Search::expand(int parent) {
  const State state = visits_[static_cast<std::size_t>(parent)].state;
  for (std::size_t cut = 0; cut < from_.size(); ++cut) {
    if (code(state, cut) >= code_split) continue;
    const int wanted = to_[cut].kind == Kind::split ? to_[cut].dim : -1;
    if (wanted >= 0 && may_split(state, cut, wanted)) expand(parent, cut, code_split + static_cast<Code>(wanted));
    for (int dim : order_)
      if (dim != wanted && may_split(state, cut, dim)) expand(parent, cut, code_split + static_cast<Code>(dim));
    if (code(state, cut) == code_partial) expand(parent, cut, code_replicate);
  }
}

void Search::run() {
  Visit start;
  for (std::size_t cut = 0; cut < from_.size(); ++cut) start.state = with(start.state, cut, code_of(from_[cut]));
  start.held = held_elements(mesh_, tensor_.shape, from_);
  push(start);
  std::set<State> closed;
  for (;;) {
    const int top = open_.top();
    open_.pop();
    Visit& visit = visits_[static_cast<std::size_t>(top)];
    if (closed.contains(visit.state)) continue;
    if (!visit.exact) {
      const Cost bound = std::max(visit.bound, visit.so_far + rest(visit));
      const bool same = bound == visit.bound;
      visit.bound = bound;
      visit.exact = true;
      if (!same) {
        open_.push(top);
        continue;
      }
    }
    if (!partial_left(visit.state)) {
      best_ = visit;
      return;
    }
    closed.insert(visit.state);
    expand(top);
  }
}

/// Whether a reduce-scatter goes on with the dim of the one before, on the next cut.
bool goes_on(const Step& before, const Step& step) {
  if (before.kind != StepKind::reduce_scatter || step.kind != before.kind) return false;
  const auto cut = static_cast<std::size_t>(step.cut);
  return step.cut == before.cut + before.cuts && step.to[cut].dim == step.to[cut - 1].dim;
}

/// Fewer collectives, of fewer messages across slow links: a ring over ranks of several hosts enters each of them once.
std::vector<Step> joined(std::vector<Step> steps) {
  std::vector<Step> fewer;
  for (Step& step : steps) {
    if (fewer.empty() || !goes_on(fewer.back(), step)) {
      fewer.push_back(std::move(step));
      continue;
    }
    fewer.back().cuts += 1;
    fewer.back().to = std::move(step.to);
    fewer.back().elements += step.elements;
  }
  return fewer;
}

std::vector<Step> Search::steps() const {
  std::vector<Step> steps;
  Tiling to = normalise(tiling_of(best_.state), tensor_.shape, mesh_);
  if (to != to_) {
    const std::int64_t lacking = needed_ - overlap(mesh_, tensor_.shape, to, to_);
    steps.push_back({StepKind::exchange, -1, 1, to, to_, lacking});
  }
  for (const Visit* visit = &best_; visit->parent >= 0;) {
    const Visit* previous = &visits_[static_cast<std::size_t>(visit->parent)];
    Tiling from = normalise(tiling_of(previous->state), tensor_.shape, mesh_);
    steps.push_back({visit->kind, visit->cut, 1, from, to, visit->so_far.elements - previous->so_far.elements});
    to = std::move(from);
    visit = previous;
  }
  std::ranges::reverse(steps);
  return joined(std::move(steps));
}

std::int64_t lacking_elements(const Mesh& mesh, const Shape& shape, const Tiling& from, const Tiling& to) {
  return held_elements(mesh, shape, to) - overlap(mesh, shape, from, to);
}

/// True when there is nothing to do.
bool equal(const Tiling& from, const Tiling& to) {
  if (from == to) return true;
  ensure(!has_partial(to), "a sum is never undone: nothing but the same tiling leads to a partial one");
  ensure(!has_halo(from), "copies with halos are made from blocks, not the other way");
  return false;
}

} // namespace

std::string_view to_string(StepKind kind) {
  switch (kind) {
  case StepKind::slice:
    return "slice";
  case StepKind::reduce_scatter:
    return "reduce_scatter";
  case StepKind::all_reduce:
    return "all_reduce";
  case StepKind::exchange:
    return "exchange";
  }
  throw Bug("unknown StepKind");
}

std::vector<Step> path(const Mesh& mesh, const Moved& tensor, const Tiling& from, const Tiling& to) {
  if (equal(from, to)) return {};
  if (has_partial(from)) return Search(mesh, tensor, from, to).steps();
  return {{StepKind::exchange, -1, 1, from, to, lacking_elements(mesh, tensor.shape, from, to)}};
}

std::int64_t elements_moved(const Mesh& mesh, const Moved& tensor, const Tiling& from, const Tiling& to) {
  if (equal(from, to)) return 0;
  if (has_partial(from)) return Search(mesh, tensor, from, to).elements();
  return lacking_elements(mesh, tensor.shape, from, to);
}

// Holders agree with receivers on the cuts that `from` replicates (see exchange_pieces). So what comes from ranks that
// agree on the first cuts is what lies in the block of `from` with the other cuts left whole.
std::int64_t elements_from_outside(const Mesh& mesh, const Shape& shape, const Tiling& from, const Tiling& to,
                                   int cuts) {
  Tiling outer = from;
  for (std::size_t cut = static_cast<std::size_t>(cuts); cut < outer.size(); ++cut) outer[cut] = replicate();
  return lacking_elements(mesh, shape, outer, to);
}

} // namespace soybean::tiling
