#include "base/error.hpp"
#include "tiling/redistribution.hpp"

namespace soybean::tiling {

namespace {

/// True when both ranks have the same coordinate on every cut that `tiling` replicates.
bool same_copy(const Mesh& mesh, const Tiling& tiling, int a, int b) {
  for (std::size_t cut = mesh.cuts.size(); cut-- > 0; a /= mesh.cuts[cut], b /= mesh.cuts[cut])
    if (tiling[cut].kind == Kind::replicate && a % mesh.cuts[cut] != b % mesh.cuts[cut]) return false;
  return true;
}

} // namespace

// The ranks that agree with the receiver on all cuts `from` replicates hold every block of `from` exactly once between
// them, the receiver's own one included. Of all holders of a block that one shares most with the receiver, and
// receivers of different coordinates turn to different holders.
ExchangePieces exchange_pieces(const Mesh& mesh, const Shape& shape, const Tiling& from, const Tiling& to, int rank) {
  ensure(!has_partial(from) && !has_partial(to), "an exchange moves whole values");
  ensure(!has_halo(from), "an exchange begins at blocks, each element in one of them");
  const Box held = block(from, shape, mesh, rank), needed = block(to, shape, mesh, rank);
  ExchangePieces pieces;
  for (int peer = 0; peer < ranks(mesh); ++peer) {
    if (!same_copy(mesh, from, rank, peer)) continue;
    const Box in = intersect(block(from, shape, mesh, peer), needed);
    if (!empty(in)) pieces.receive.push_back({peer, in});
    const Box out = intersect(held, block(to, shape, mesh, peer));
    if (!empty(out)) pieces.send.push_back({peer, out});
  }
  return pieces;
}

} // namespace soybean::tiling
