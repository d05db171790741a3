#pragma once
// Random meshes, shapes and tilings for the property tests of src/tiling, drawn from a seeded std::mt19937 without the
// library's distributions, so that they are the same everywhere.
#include "tiling/tiling.hpp"

#include <algorithm>
#include <random>

namespace soybean::tiling {

class Draw {
public:
  explicit Draw(unsigned seed) : random_(seed) {}
  /// Uniform enough in [low, high].
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  template<class T>
  const T& one_of(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(items.size()) - 1))];
  }

  Shape shape(int dims, std::int64_t largest) {
    Shape shape;
    for (int d = 0; d < dims; ++d) shape.push_back(number(1, largest));
    return shape;
  }
  Shape units(const Shape& shape) {
    Shape units;
    for (std::int64_t extent : shape)
      units.push_back(number(1, number(0, 1) ? extent : std::min<std::int64_t>(extent, 4)));
    return units;
  }
  /// A legal tiling; `partials` of 0 gives none, otherwise one cut in about `partials` is partial.
  Tiling tiling(const Mesh& mesh, const Shape& shape, const Shape& units, int partials = 0) {
    Tiling tiling;
    for (std::size_t cut = 0; cut < mesh.cuts.size(); ++cut) {
      const auto d = static_cast<int>(number(-1, static_cast<std::int64_t>(shape.size()) - 1));
      if (partials > 0 && number(1, partials) == 1)
        tiling.push_back(partial());
      else
        tiling.push_back(d < 0 ? replicate() : split(d, units[static_cast<std::size_t>(d)]));
    }
    return tiling;
  }

private:
  std::mt19937 random_;
};

/// Meshes of 1 to 12 ranks: the default ones and some orders a user may ask for.
inline std::vector<Mesh> test_meshes() {
  return {{{}},  {{2}},       {{3}},    {{2, 2}}, {{4}},       {{5}},       {{3, 2}}, {{2, 3}},
          {{7}}, {{2, 2, 2}}, {{4, 2}}, {{3, 3}}, {{3, 2, 2}}, {{2, 3, 2}}, {{2, 6}}};
}

} // namespace soybean::tiling
