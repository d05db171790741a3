#include "tiling/tiling.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <numeric>

namespace soybean::tiling {

namespace {

bool splits(const Entry& entry, int dim) {
  return entry.kind == Kind::split && entry.dim == dim;
}

bool same_blocks(std::int64_t n, std::int64_t parts, std::int64_t unit, std::int64_t other) {
  const std::int64_t units = n / unit, others = n / other;
  for (std::int64_t j = 1; j < parts; ++j)
    if (unit * (j * units / parts) != other * (j * others / parts)) return false;
  return true;
}

/// The smallest unit that cuts n into the same `parts` blocks as `unit` does.
std::int64_t smallest_unit(std::int64_t n, std::int64_t parts, std::int64_t unit) {
  const std::int64_t units = n / unit;
  if (unit == 1 || parts == 1 || (units * unit == n && units % parts == 0)) return 1; // even blocks
  if (units <= 1) return n / 2 + 1; // everything in the last block: the first unit with no second one
  // A unit divides every boundary between blocks, so only divisors of their greatest common one can do.
  std::int64_t common = 0;
  for (std::int64_t j = 1; j < parts; ++j) common = std::gcd(common, unit * (j * units / parts));
  const auto fits = [&](std::int64_t candidate) { return same_blocks(n, parts, unit, candidate); };
  std::int64_t root = 1;
  for (; root <= common / root; ++root)
    if (root < unit && common % root == 0 && fits(root)) return root;
  for (; root >= 1; --root)
    if (common % root == 0 && common / root < unit && fits(common / root)) return common / root;
  return unit;
}

/// Positions of window i: first, first + dilation, …, last.
struct Window {
  std::int64_t first, last;
};
Window window(const Halo& h, std::int64_t i) {
  const std::int64_t first = i * h.stride - h.padding;
  return {first, first + std::int64_t{h.dilation} * (h.kernel - 1)};
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && a < 0 ? 1 : 0);
}
std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return -floor_div(-a, b);
}

/// From the first to the last position of an image of n that windows [begin, end) reach.
Range reached_positions(const Halo& h, std::int64_t n, Range windows) {
  std::int64_t low = n, high = -1;
  for (std::int64_t i = windows.begin; i < windows.end; ++i) { // those that begin before the image, and one more
    const Window w = window(h, i);
    const std::int64_t at = w.first >= 0 ? w.first : w.first + ceil_div(-w.first, h.dilation) * h.dilation;
    if (at <= w.last) low = std::min(low, at);
    if (w.first >= 0) break;
  }
  for (std::int64_t i = windows.end; i-- > windows.begin;) { // those that end behind the image, and one more
    const Window w = window(h, i);
    const std::int64_t at = w.last < n ? w.last : w.first + floor_div(n - 1 - w.first, h.dilation) * h.dilation;
    if (at >= w.first) high = std::max(high, at);
    if (w.last < n) break;
  }
  return low <= high ? Range{low, high + 1} : Range{0, 0};
}

/// From the first to the last of n windows that reach into the block of the image.
Range reaching_windows(const Halo& h, std::int64_t n, Range block) {
  const auto reaches = [&](std::int64_t i) {
    const Window w = window(h, i);
    const std::int64_t from = std::max<std::int64_t>(0, ceil_div(block.begin - w.first, h.dilation));
    return w.first + from * h.dilation <= std::min(w.last, block.end - 1);
  };
  const std::int64_t reach = std::int64_t{h.dilation} * (h.kernel - 1);
  std::int64_t low = std::max<std::int64_t>(0, ceil_div(block.begin + h.padding - reach, h.stride));
  std::int64_t high = std::min(n - 1, floor_div(block.end - 1 + h.padding, h.stride));
  while (low <= high && !reaches(low)) ++low; // dilated ones may step over it
  while (high >= low && !reaches(high)) --high;
  return low <= high ? Range{low, high + 1} : Range{0, 0};
}

} // namespace

Range needed_range(const Halo& halo, std::int64_t n, Range block) {
  if (block.begin >= block.end) return {0, 0};
  switch (halo.reach) {
  case Reach::none:
    return block;
  case Reach::positions:
    return reached_positions(halo, n, block);
  case Reach::windows:
    return reaching_windows(halo, n, block);
  case Reach::neighbours:
    return reached_positions(halo, n, reaching_windows(halo, halo.other, block));
  }
  throw Bug("unknown Reach");
}

Range part_range(const Entry& entry, std::int64_t n, std::int64_t parts, std::int64_t j) {
  const Reach reach = entry.halo.reach;
  if (reach == Reach::none) return block_range(n, entry.unit, parts, j);
  const std::int64_t cut = reach == Reach::neighbours ? n : entry.halo.other;
  return needed_range(entry.halo, n, block_range(cut, entry.unit, parts, j));
}

Range block_range(std::int64_t n, std::int64_t unit, std::int64_t parts, std::int64_t j) {
  const std::int64_t units = n / unit;
  return {unit * (j * units / parts), j + 1 == parts ? n : unit * ((j + 1) * units / parts)};
}

Box block(const Tiling& tiling, const Shape& shape, const Mesh& mesh, int rank) {
  // Until the last loop, offsets count a dim's blocks before this rank's and extents its blocks altogether.
  Box box{Shape(shape.size(), 0), Shape(shape.size(), 1)};
  for (std::size_t cut = mesh.cuts.size(); cut-- > 0; rank /= mesh.cuts[cut]) {
    if (tiling[cut].kind != Kind::split) continue;
    const auto d = static_cast<std::size_t>(tiling[cut].dim);
    box.offsets[d] += rank % mesh.cuts[cut] * box.extents[d];
    box.extents[d] *= mesh.cuts[cut];
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.extents[d] == 1) {
      box.extents[d] = shape[d];
      continue;
    }
    const auto entry = std::ranges::find_if(tiling, [&](const Entry& e) { return splits(e, static_cast<int>(d)); });
    const Range range = part_range(*entry, shape[d], box.extents[d], box.offsets[d]);
    box.offsets[d] = range.begin;
    box.extents[d] = range.end - range.begin;
  }
  return box;
}

namespace {

/// What a halo amounts to: the dim's own blocks, all of it, or itself.
Entry without_halo(const Entry& entry, std::int64_t n, std::int64_t parts) {
  bool blocks = true, all = true;
  for (std::int64_t j = 0; j < parts && (blocks || all); ++j) {
    const Range needed = part_range(entry, n, parts, j), own = block_range(n, 1, parts, j);
    const bool nothing = needed.begin >= needed.end && own.begin >= own.end;
    blocks = blocks && (nothing || (needed.begin == own.begin && needed.end == own.end));
    all = all && needed.begin == 0 && needed.end == n;
  }
  return blocks ? split(entry.dim) : all ? replicate() : entry;
}

} // namespace

Tiling normalise(Tiling tiling, const Shape& shape, const Mesh& mesh) {
  for (std::size_t cut = 0; cut < tiling.size(); ++cut) {
    const Entry entry = tiling[cut];
    if (entry.kind != Kind::split) continue;
    if (entry.halo.reach != Reach::none) {
      const Entry plain =
          without_halo(entry, shape[static_cast<std::size_t>(entry.dim)], parts(tiling, mesh, entry.dim));
      if (plain == entry) continue;
      for (Entry& e : tiling)
        if (splits(e, entry.dim)) e = plain;
      continue;
    }
    if (entry.unit == 1) continue;
    const std::int64_t unit =
        smallest_unit(shape[static_cast<std::size_t>(entry.dim)], parts(tiling, mesh, entry.dim), entry.unit);
    if (unit == entry.unit) continue;
    for (Entry& e : tiling)
      if (splits(e, entry.dim)) e.unit = unit;
  }
  return tiling;
}

void check(const Tiling& tiling, const Shape& shape, const Mesh& mesh, std::string_view where) {
  if (tiling.size() != mesh.cuts.size())
    fail("{}: entries of tiling {}, got {} expected {}, one per cut of the mesh {}. {}", where, to_string(tiling),
         tiling.size(), mesh.cuts.size(), to_string(mesh),
         mesh.cuts.empty() ? "one rank has no cuts: leave it out"
                           : "name split(DIM) or replicate for each cut, with commas between them");
  for (const Entry& entry : tiling) {
    if (entry.kind != Kind::split) continue;
    if (entry.dim < 0 || entry.dim >= static_cast<std::int64_t>(shape.size()))
      fail("{}: dim split by tiling {}, got {} expected a dim of a tensor of shape {}, counted from 0. split a dim the "
           "tensor has",
           where, to_string(tiling), entry.dim, soybean::to_string(shape));
    const std::int64_t extent = entry.halo.reach == Reach::none ? shape[static_cast<std::size_t>(entry.dim)] : 1;
    if (entry.unit < 1 || entry.unit > extent)
      fail("{}: unit of dim {} in tiling {}, got {} expected 1 to {}, the dim's extent. leave the unit out", where,
           entry.dim, to_string(tiling), entry.unit, extent);
    for (const Entry& other : tiling)
      if (splits(other, entry.dim) && other.unit != entry.unit)
        fail("{}: units of dim {} in tiling {}, got {} and {} expected one for all cuts. give each cut the same unit",
             where, entry.dim, to_string(tiling), entry.unit, other.unit);
    ensure(std::ranges::all_of(tiling, [&](const Entry& e) { return !splits(e, entry.dim) || e.halo == entry.halo; }),
           "cuts that split one dim share its halo");
  }
}

bool has_partial(const Tiling& tiling) {
  return std::ranges::any_of(tiling, [](const Entry& e) { return e.kind == Kind::partial; });
}

bool has_halo(const Tiling& tiling) {
  return std::ranges::any_of(tiling, [](const Entry& e) { return e.halo.reach != Reach::none; });
}

Tiling replicated(const Mesh& mesh) {
  return Tiling(mesh.cuts.size(), replicate());
}

int parts(const Tiling& tiling, const Mesh& mesh, int dim) {
  int count = 1;
  for (std::size_t cut = 0; cut < tiling.size(); ++cut)
    if (splits(tiling[cut], dim)) count *= mesh.cuts[cut];
  return count;
}

bool has_empty_block(const Tiling& tiling, const Shape& shape, const Mesh& mesh) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto dim = static_cast<int>(d);
    const auto entry = std::ranges::find_if(tiling, [&](const Entry& e) { return splits(e, dim); });
    if (entry != tiling.end() && entry->halo.reach != Reach::none) {
      const std::int64_t count = parts(tiling, mesh, dim);
      for (std::int64_t j = 0; j < count; ++j)
        if (const Range range = part_range(*entry, shape[d], count, j); range.begin >= range.end) return true;
      continue;
    }
    const std::int64_t units = entry == tiling.end() ? shape[d] : shape[d] / entry->unit;
    // Blocks of whole units: some block is empty when there are fewer units than blocks. The first one always is.
    if (units < parts(tiling, mesh, dim)) return true;
  }
  return false;
}

} // namespace soybean::tiling
