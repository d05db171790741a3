#pragma once
// Elements moved between tilings, in bulk and memoised; or, of classes of tilings, the least that can be moved. Hides
// that shapes whose dims all cuts divide evenly share them up to a factor. Called inside src/plan only.
#include "base/types.hpp"
#include "graph/graph.hpp"
#include "tiling/mesh.hpp"
#include "tiling/tiling.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace soybean::plan {

enum class Detail : std::uint8_t {
  exact,   ///< tilings as they are
  classes, ///< tilings stand for their classes (classes.hpp)
};

class MoveCosts {
public:
  explicit MoveCosts(tiling::Mesh mesh, Detail detail = Detail::exact) : mesh_(std::move(mesh)), detail_(detail) {}

  const tiling::Mesh& mesh() const { return mesh_; }
  Detail detail() const { return detail_; }

  /// Elements all ranks together receive for each pair: result[i * to.size() + j] for from[i] → to[j]. Targets are
  /// partial-free.
  std::vector<std::int64_t> table(const graph::Tensor& tensor, const std::vector<tiling::Tiling>& from,
                                  const std::vector<tiling::Tiling>& to);

private:
  struct Key {
    Shape shape, units;
    tiling::Tiling from;
    std::vector<tiling::Tiling> to;
    auto operator<=>(const Key&) const = default;
  };
  std::int64_t reduce(Key& key) const;

  tiling::Mesh mesh_;
  Detail detail_;
  std::map<Key, std::vector<std::int64_t>> rows_;
};

/// Bytes of the largest block any rank holds of the tensor.
std::int64_t largest_block_bytes(const graph::Tensor& tensor, const tiling::Tiling& tiling, const tiling::Mesh& mesh);

} // namespace soybean::plan
