#include "plan/classes.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace soybean::plan {
namespace {

using tiling::Kind;
using tiling::Mesh;
using tiling::Tiling;

/// Sorts what stands at alike cuts.
template<class List>
List sorted(List list, const Alike& alike) {
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::size_t later = i + 1; later < list.size(); ++later)
      if (alike[later] == alike[i] && list[later] < list[i]) std::swap(list[later], list[i]);
  return list;
}

template<class List, class Option>
bool continues(const List& list, const Option& next, const Alike& alike) {
  for (std::size_t before = list.size(); before-- > 0;)
    if (alike[before] == alike[list.size()]) return !(next < list[before]);
  return true;
}

/// What all tilings of a class have in common.
struct Spread {
  Shape longest;         ///< extent of the longest block, per dim
  std::int64_t held = 1; ///< elements of all ranks' blocks together
};

Spread spread(const Mesh& mesh, const Shape& shape, const Tiling& tiling) {
  Spread result{shape, 1};
  Shape parts(shape.size(), 1);
  std::vector<tiling::Entry> split(shape.size());
  for (std::size_t cut = 0; cut < tiling.size(); ++cut)
    if (tiling[cut].kind == Kind::split) {
      parts[tiling[cut].dim] *= mesh.cuts[cut];
      split[tiling[cut].dim] = tiling[cut];
    } else {
      result.held *= mesh.cuts[cut];
    }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t sum = shape[d];
    if (parts[d] > 1 && split[d].halo.reach == tiling::Reach::none) {
      const std::int64_t unit = split[d].unit, units = shape[d] / unit; // the last block also has what is left over
      result.longest[d] = (units + parts[d] - 1) / parts[d] * unit + shape[d] % unit;
    } else if (parts[d] > 1) {
      result.longest[d] = sum = 0;
      for (std::int64_t j = 0; j < parts[d]; ++j) {
        const tiling::Range range = tiling::part_range(split[d], shape[d], parts[d], j);
        result.longest[d] = std::max(result.longest[d], range.end - range.begin);
        sum += range.end - range.begin;
      }
    }
    result.held *= sum;
  }
  return result;
}

/// Cuts that do not split, of equal parts and all partial or all replicated.
struct Group {
  int parts;
  bool partial;
  int count = 0, split = 0; ///< cuts in it, and how many of them are split on the way
};

std::vector<Group> groups_of(const Mesh& mesh, const Tiling& tiling) {
  std::vector<Group> groups;
  for (std::size_t cut = 0; cut < tiling.size(); ++cut) {
    if (tiling[cut].kind == Kind::split) continue;
    const bool partial = tiling[cut].kind == Kind::partial;
    auto same = std::find_if(groups.begin(), groups.end(),
                             [&](const Group& g) { return g.parts == mesh.cuts[cut] && g.partial == partial; });
    if (same == groups.end()) same = groups.insert(groups.end(), Group{mesh.cuts[cut], partial});
    ++same->count;
  }
  return groups;
}

/// Elements received where the cuts of each group that are to be split are sliced or reduce-scattered and the partial
/// ones that are left are all-reduced. `held` becomes what all ranks hold at the end.
std::int64_t reduced(const std::vector<Group>& groups, std::int64_t& held) {
  std::int64_t sliced = held;
  for (const Group& g : groups)
    for (int k = 0; k < g.split; ++k) {
      held /= g.parts;
      if (!g.partial) sliced /= g.parts;
    }
  std::int64_t elements = sliced - held; // reduce-scatters add up to what they take away
  for (const Group& g : groups)
    if (g.partial) elements += 2 * (held / g.parts) * (g.parts - 1) * (g.count - g.split);
  return elements;
}

} // namespace

std::vector<Choices> members(const Choices& representative, const Alike& alike) {
  std::vector<Choices> lists = {representative};
  for (std::size_t cut = 0; cut < alike.size(); ++cut) { // what may stand there: what stands there or later
    std::vector<Choices> next;
    for (const Choices& list : lists) {
      std::set<ops::Choice> tried;
      for (std::size_t other = cut; other < list.size(); ++other) {
        if (alike[other] != alike[cut] || !tried.insert(list[other]).second) continue;
        next.push_back(list);
        std::swap(next.back()[cut], next.back()[other]);
      }
    }
    lists = std::move(next);
  }
  return lists;
}

double member_count(const Choices& representative, const Alike& alike) {
  double count = 1;
  std::map<std::pair<int, ops::Choice>, int> same;
  std::map<int, int> equal;
  for (std::size_t cut = 0; cut < alike.size(); ++cut)
    count *= static_cast<double>(++equal[alike[cut]]) / ++same[{alike[cut], representative[cut]}];
  return count;
}

Tiling class_of(Tiling tiling, const Alike& alike) {
  return sorted(std::move(tiling), alike);
}
Choices class_of(Choices choices, const Alike& alike) {
  return sorted(std::move(choices), alike);
}
bool continues_class(const Tiling& list, const tiling::Entry& next, const Alike& alike) {
  return continues(list, next, alike);
}
bool continues_class(const Choices& list, ops::Choice next, const Alike& alike) {
  return continues(list, next, alike);
}

std::int64_t least_moved(const Mesh& mesh, const Shape& shape, const Tiling& from, const Tiling& to) {
  if (from == to) return 0;
  const Spread held = spread(mesh, shape, from), needed = spread(mesh, shape, to);
  std::int64_t common = tiling::ranks(mesh);
  for (std::size_t d = 0; d < shape.size(); ++d) common *= std::min(held.longest[d], needed.longest[d]);
  common = std::min({common, held.held, needed.held});
  if (!tiling::has_partial(from)) return needed.held - common;
  std::vector<Group> groups = groups_of(mesh, from);
  std::int64_t best = -1;
  for (bool more = true; more;) {
    std::int64_t left = held.held;
    const std::int64_t elements = reduced(groups, left) + needed.held - std::min(left, common);
    if (best < 0 || elements < best) best = elements;
    more = false; // count the splits up
    for (Group& g : groups) {
      more = g.split < g.count;
      g.split = more ? g.split + 1 : 0;
      if (more) break;
    }
  }
  return best;
}

} // namespace soybean::plan
