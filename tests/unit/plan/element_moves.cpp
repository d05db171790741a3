#include "unit/plan/element_moves.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <bit>

namespace soybean::test {
namespace {

using tiling::Entry;
using tiling::Kind;
using tiling::Mesh;
using tiling::Tiling;

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

/// Whether a rank holds the position along dim d.
bool holds(const Mesh& mesh, const Shape& shape, const Tiling& tiling, int rank, std::size_t d, std::int64_t at) {
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
  return halo.reach == tiling::Reach::none ? at >= begin && at < end : needs(halo, shape[d], at, begin, end);
}

/// The elements one rank holds (of full-size terms where a cut is partial).
Elements held_by(const Mesh& mesh, const Shape& shape, const Tiling& tiling, int rank) {
  std::vector<std::vector<bool>> along(shape.size()); // per dim and position
  for (std::size_t d = 0; d < shape.size(); ++d)
    for (std::int64_t at = 0; at < shape[d]; ++at) along[d].push_back(holds(mesh, shape, tiling, rank, d, at));
  Elements held(volume(shape));
  for (std::int64_t e = 0; e < volume(shape); ++e) {
    std::int64_t rest = e;
    bool has_it = true;
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d])
      has_it = has_it && along[d][static_cast<std::size_t>(rest % shape[d])];
    if (has_it) held.insert(e);
  }
  return held;
}

Tiling with(Tiling tiling, std::size_t cut, const Entry& entry) {
  tiling[cut] = entry;
  return tiling;
}

} // namespace

std::int64_t Elements::count() const {
  std::int64_t sum = 0;
  for (std::uint64_t word : words_) sum += std::popcount(word);
  return sum;
}

std::int64_t Elements::count_outside(const Elements& other) const {
  std::int64_t sum = 0;
  for (std::size_t w = 0; w < words_.size(); ++w) sum += std::popcount(words_[w] & ~other.words_[w]);
  return sum;
}

void Elements::unite(const Elements& other) {
  for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
}

int ElementMoves::number(const Tiling& tiling) {
  const auto [known, is_new] = numbers_.emplace(tiling, static_cast<int>(tilings_.size()));
  if (!is_new) return known->second;
  tilings_.push_back(tiling);
  std::vector<Elements>& holding = holdings_.emplace_back();
  for (int r = 0; r < parts_of(*mesh_); ++r) holding.push_back(held_by(*mesh_, tensor_->shape, tiling, r));
  return known->second;
}

std::int64_t ElementMoves::fullest(int number) const {
  std::int64_t most = 0;
  for (const Elements& held : holdings_[number]) most = std::max(most, held.count());
  return most;
}

bool ElementMoves::leaves_idle(int number) const {
  const std::vector<Elements>& holding = holdings_[number];
  return std::any_of(holding.begin(), holding.end(), [](const Elements& held) { return held.count() == 0; });
}

std::int64_t ElementMoves::elements(int from, int to) {
  known_.resize(tilings_.size());
  known_[from].resize(tilings_.size(), -1);
  if (known_[from][to] >= 0) return known_[from][to];
  const std::int64_t best = partial(from) ? cheapest(from, to) : lacking(from, to);
  return known_[from][to] = best;
}

/// The best of all first steps from a tiling with partial sums.
std::int64_t ElementMoves::cheapest(int from, int to) {
  const Tiling start = tilings_[from], end = tilings_[to];
  std::int64_t best = impossible;
  for (std::size_t cut = 0; cut < start.size(); ++cut) {
    const bool sum = start[cut].kind == Kind::partial;
    if (start[cut].kind == Kind::split) continue;
    if (sum)
      best = std::min(best, 2 * reduced(from, cut) + elements(number(with(start, cut, tiling::replicate())), to));
    for (std::size_t d = 0; d < tensor_->shape.size(); ++d) {
      const std::optional<Tiling> next = split(start, cut, static_cast<int>(d), end);
      if (!next) continue;
      const int then = number(*next);
      check_partition(from, then, cut);
      best = std::min(best, (sum ? reduced(from, cut) : 0) + elements(then, to));
    }
  }
  return best;
}

/// `from` with one more cut splitting the dim, unless a later cut splits it.
std::optional<Tiling> ElementMoves::split(const Tiling& from, std::size_t cut, int dim, const Tiling& to) const {
  std::int64_t unit = tensor_->units[dim];
  for (const Entry& e : to)
    if (e.kind == Kind::split && e.dim == dim) unit = e.unit;
  for (std::size_t c = 0; c < from.size(); ++c) {
    if (from[c].kind != Kind::split || from[c].dim != dim) continue;
    if (c > cut) return std::nullopt;
    unit = from[c].unit;
  }
  return with(from, cut, tiling::split(dim, unit));
}

/// Elements received when the ranks along a cut each add up a part of their terms: everyone gets its part from all
/// others.
std::int64_t ElementMoves::reduced(int from, std::size_t cut) const {
  std::int64_t received = 0;
  for (int r = 0; r < parts_of(*mesh_); ++r)
    if (position(*mesh_, r, cut) == 0) received += (mesh_->cuts[cut] - 1) * holdings_[from][r].count();
  return received;
}

std::int64_t ElementMoves::lacking(int from, int to) const {
  std::int64_t received = 0;
  for (int r = 0; r < parts_of(*mesh_); ++r) received += holdings_[to][r].count_outside(holdings_[from][r]);
  return received;
}

/// What the ranks along a cut held before is now in exactly one of them each.
void ElementMoves::check_partition(int from, int to, std::size_t cut) {
  if (!checked_.insert({from, to}).second) return;
  const int ranks = parts_of(*mesh_);
  for (int r = 0; r < ranks; ++r) {
    Elements parts(volume(tensor_->shape));
    std::int64_t count = 0;
    for (int other = 0; other < ranks; ++other) {
      bool along = true;
      for (std::size_t c = 0; c < mesh_->cuts.size(); ++c)
        along = along && (c == cut || position(*mesh_, r, c) == position(*mesh_, other, c));
      if (!along) continue;
      parts.unite(holdings_[to][other]);
      count += holdings_[to][other].count();
    }
    ensure(parts == holdings_[from][r] && count == parts.count(), "the parts of a sum do not partition it");
  }
}

} // namespace soybean::test
