#pragma once
// The mesh: P ranks arranged as a product of cuts, slowest links first. Used by everything that asks "who holds what".
#include <cstdint>
#include <string>
#include <vector>

namespace soybean::tiling {

/// Rank r has one coordinate per cut, mixed radix, the first cut outermost: r = ((c0·p1 + c1)·p2 + c2)….
/// A mesh of no cuts is one rank.
struct Mesh {
  std::vector<int> cuts; ///< parts per cut, each >= 2
  bool operator==(const Mesh&) const = default;
};

int ranks(const Mesh& mesh);
int coordinate(const Mesh& mesh, int rank, int cut);

/// Into how many parts `count` cuts from `cut` on divide the ranks.
int parts(const Mesh& mesh, int cut, int count);

/// The ranks that differ from `rank` at most in the `count` cuts from `cut` on, ascending (so there are as many as
/// parts).
std::vector<int> group(const Mesh& mesh, int rank, int cut, int count = 1);

/// The default mesh (DESIGN §3): with equally many ranks on each host the primes of the host count, descending, then
/// the primes of ranks per host, descending; otherwise the primes of the number of ranks, descending.
Mesh make_mesh(const std::vector<int>& ranks_per_host);

/// The mesh a user asked for (`parallel.mesh = [2, 4]`). Throws Error unless every cut is >= 2 and they multiply to
/// `ranks`.
Mesh make_mesh(const std::vector<std::int64_t>& cuts, int ranks);

/// The first `cuts` cuts of a mesh.
Mesh prefix(const Mesh& mesh, int cuts);

std::string to_string(const Mesh& mesh); ///< "2x2x2", "1" for one rank

} // namespace soybean::tiling
