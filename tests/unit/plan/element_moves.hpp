#pragma once
// Which rank holds which element of a small tensor under a tiling, and what moves between two of them, by tracking
// every element: no `block`, no `elements_moved`. For brute force.
#include "graph/graph.hpp"
#include "tiling/mesh.hpp"
#include "tiling/tiling.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace soybean::test {

/// A set of elements of a tensor, in row-major order.
class Elements {
public:
  explicit Elements(std::int64_t of = 0) : words_(static_cast<std::size_t>((of + 63) / 64)) {}
  void insert(std::int64_t e) { words_[static_cast<std::size_t>(e / 64)] |= std::uint64_t{1} << (e % 64); }
  std::int64_t count() const;
  std::int64_t count_outside(const Elements& other) const; ///< of this, not of the other
  void unite(const Elements& other);
  bool operator==(const Elements&) const = default;

private:
  std::vector<std::uint64_t> words_;
};

/// One tensor's redistributions, each found by trying all sequences of steps. Tilings have numbers.
class ElementMoves {
public:
  /// More than anything moves: there is no way.
  static constexpr std::int64_t impossible = std::int64_t{1} << 40;

  ElementMoves(const tiling::Mesh& mesh, const graph::Tensor& tensor) : mesh_(&mesh), tensor_(&tensor) {}

  int number(const tiling::Tiling& tiling);
  const tiling::Tiling& tiling(int number) const { return tilings_[number]; }
  bool partial(int number) const { return tiling::has_partial(tilings_[number]); }

  /// Elements all ranks receive on the cheapest way from one tiling to another (partial-free) one.
  std::int64_t elements(int from, int to);
  std::int64_t fullest(int number) const; ///< elements of the fullest rank
  bool leaves_idle(int number) const;     ///< some rank holds nothing

private:
  std::optional<tiling::Tiling> split(const tiling::Tiling& from, std::size_t cut, int dim,
                                      const tiling::Tiling& to) const;
  std::int64_t cheapest(int from, int to);
  std::int64_t reduced(int from, std::size_t cut) const;
  std::int64_t lacking(int from, int to) const;
  void check_partition(int from, int to, std::size_t cut);

  const tiling::Mesh* mesh_;
  const graph::Tensor* tensor_;
  std::map<tiling::Tiling, int> numbers_;
  std::vector<tiling::Tiling> tilings_;
  std::vector<std::vector<Elements>> holdings_;  // per tiling and rank
  std::vector<std::vector<std::int64_t>> known_; // per tiling from and to, -1 where it is not
  std::set<std::pair<int, int>> checked_;
};

} // namespace soybean::test
