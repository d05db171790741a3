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

} // namespace

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
    const Range range = block_range(shape[d], entry->unit, box.extents[d], box.offsets[d]);
    box.offsets[d] = range.begin;
    box.extents[d] = range.end - range.begin;
  }
  return box;
}

Tiling normalise(Tiling tiling, const Shape& shape, const Mesh& mesh) {
  for (std::size_t cut = 0; cut < tiling.size(); ++cut) {
    const Entry entry = tiling[cut];
    if (entry.kind != Kind::split || entry.unit == 1) continue;
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
    const std::int64_t extent = shape[static_cast<std::size_t>(entry.dim)];
    if (entry.unit < 1 || entry.unit > extent)
      fail("{}: unit of dim {} in tiling {}, got {} expected 1 to {}, the dim's extent. leave the unit out", where,
           entry.dim, to_string(tiling), entry.unit, extent);
    for (const Entry& other : tiling)
      if (splits(other, entry.dim) && other.unit != entry.unit)
        fail("{}: units of dim {} in tiling {}, got {} and {} expected one for all cuts. give each cut the same unit",
             where, entry.dim, to_string(tiling), entry.unit, other.unit);
  }
}

bool has_partial(const Tiling& tiling) {
  return std::ranges::any_of(tiling, [](const Entry& e) { return e.kind == Kind::partial; });
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
    const std::int64_t units = entry == tiling.end() ? shape[d] : shape[d] / entry->unit;
    // Blocks of whole units: some block is empty when there are fewer units than blocks. The first one always is.
    if (units < parts(tiling, mesh, dim)) return true;
  }
  return false;
}

} // namespace soybean::tiling
