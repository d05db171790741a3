#pragma once
// A tiling says, cut by cut, how a tensor is spread over the mesh; `block` says which box a rank then holds.
// Data, model and hybrid parallelism are nothing but choices of these (arXiv 1805.04170, section 4).
#include "base/types.hpp"
#include "tiling/mesh.hpp"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::tiling {

enum class Kind : std::uint8_t {
  replicate, ///< every part holds all of it
  split,     ///< each part holds one block of dim `dim`
  partial,   ///< each part holds a full-size term of a sum still to be added up
};

/// Whose block a rank's range of a dim follows from. Windows slide over an image; both are dims of some tensors.
enum class Reach : std::uint8_t {
  none,       ///< its own: the dim is cut into blocks
  positions,  ///< of the windows: the range is the image's positions that they reach
  windows,    ///< of the image: the range is the windows that reach into it
  neighbours, ///< of the image: the range is the positions that the windows which reach into it reach
};

/// The ranges of an image's dim (or of its windows) that blocks of the other one need: they overlap by what the windows
/// share, a halo. Window i reaches positions i·stride − padding + r·dilation, r < kernel. Only what a node needs has
/// one, never a stored tiling.
struct Halo {
  Reach reach = Reach::none;
  std::int32_t other = 0; ///< extent of the dim of the windows, for `windows` of the image
  std::int32_t stride = 1, kernel = 1, dilation = 1, padding = 0;
  auto operator<=>(const Halo&) const = default;
};

/// What one cut does to a tensor. For split, blocks of `dim` consist of whole units of `unit` elements.
struct Entry {
  Kind kind = Kind::replicate;
  std::int32_t dim = -1;
  std::int64_t unit = 1;
  Halo halo = {};
  auto operator<=>(const Entry&) const = default;
};

constexpr Entry replicate() {
  return {};
}
constexpr Entry partial() {
  return {Kind::partial, -1, 1};
}
constexpr Entry split(int dim, std::int64_t unit = 1, const Halo& halo = {}) {
  return {Kind::split, dim, unit, halo};
}

/// One entry per cut of the mesh. Cuts that split the same dim nest, outermost first, and share one unit and halo.
/// Compare tilings only after `normalise`.
using Tiling = std::vector<Entry>;

/// Block j of p of a dim of n elements in units of u: [u⌊j⌊n/u⌋/p⌋, u⌊(j+1)⌊n/u⌋/p⌋), the last one ending at n.
struct Range {
  std::int64_t begin, end;
};
Range block_range(std::int64_t n, std::int64_t unit, std::int64_t parts, std::int64_t j);

/// Of a dim of n elements, the smallest range that holds all that `block` of the other dim needs (of this one, for
/// `neighbours`); [0, 0) if that is nothing.
Range needed_range(const Halo& halo, std::int64_t n, Range block);

/// What part j of p holds of the dim, of n elements, that `entry` splits.
Range part_range(const Entry& entry, std::int64_t n, std::int64_t parts, std::int64_t j);

/// The box of the global index space that `rank` holds (for a partial cut: of the terms it holds). Extents may be 0.
Box block(const Tiling& tiling, const Shape& shape, const Mesh& mesh, int rank);

/// Replaces each split dim's unit by the smallest unit that gives the same blocks, and a halo that gives the dim's own
/// blocks, or all of it, by these, so that equal tilings compare equal.
Tiling normalise(Tiling tiling, const Shape& shape, const Mesh& mesh);

/// Throws Error(where: …) unless the tiling has one entry per cut, dims exist, units are equal within a dim, >= 1 and
/// at most the extent.
void check(const Tiling& tiling, const Shape& shape, const Mesh& mesh, std::string_view where);

bool has_partial(const Tiling& tiling);
bool has_halo(const Tiling& tiling);
Tiling replicated(const Mesh& mesh);
int parts(const Tiling& tiling, const Mesh& mesh, int dim); ///< into how many blocks `dim` is split
bool has_empty_block(const Tiling& tiling, const Shape& shape, const Mesh& mesh);

/// "split(0),replicate,partial"; a unit other than 1 reads "split(1/36)", a halo "split(2)+halo(3 padding 1)", or
/// "+windows(…)" and "+neighbours(…)"; one rank (no cuts) reads "whole".
std::string to_string(const Tiling& tiling);
/// The inverse, without halos. `where` names the source of the text in errors. Units left out are `units[dim]` (1 if
/// units is empty).
Tiling parse_tiling(std::string_view text, std::string_view where, const Shape& units = {});

} // namespace soybean::tiling
