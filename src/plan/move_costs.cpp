#include "plan/move_costs.hpp"

#include "base/error.hpp"
#include "plan/classes.hpp"
#include "tiling/redistribution.hpp"

#include <algorithm>

namespace soybean::plan {

using tiling::Tiling;

/// Elements moved are proportional to the extent of a dim that the cuts divide evenly: replaces such extents by the
/// smallest that do the same and returns the factor. A dim neither tiling splits matters only on the way out of a
/// partial tiling.
std::int64_t MoveCosts::reduce(Key& key) const {
  const std::int64_t ranks = tiling::ranks(mesh_);
  std::vector<char> split(key.shape.size(), tiling::has_partial(key.from) ? 1 : 0), even(key.shape.size(), 1);
  const auto look = [&](const Tiling& tiling) {
    for (const tiling::Entry& entry : tiling) {
      if (entry.kind != tiling::Kind::split) continue;
      split[entry.dim] = 1;
      if (entry.unit != 1) even[entry.dim] = 0;
    }
  };
  look(key.from);
  for (const Tiling& tiling : key.to) look(tiling);
  std::int64_t factor = 1;
  for (std::size_t d = 0; d < key.shape.size(); ++d) {
    const std::int64_t least = split[d] ? ranks : 1;
    if (!even[d] || key.shape[d] % (least * key.units[d]) != 0) continue;
    factor *= key.shape[d] / least;
    key.shape[d] = least;
    key.units[d] = 1;
  }
  return factor;
}

std::vector<std::int64_t> MoveCosts::table(const graph::Tensor& tensor, const std::vector<Tiling>& from,
                                           const std::vector<Tiling>& to) {
  std::vector<std::int64_t> table;
  table.reserve(from.size() * to.size());
  for (const Tiling& begin : from) {
    Key key{tensor.shape, tensor.units, begin, to};
    const std::int64_t factor = reduce(key);
    auto row = rows_.find(key);
    if (row == rows_.end()) {
      std::vector<std::int64_t> elements;
      elements.reserve(to.size());
      for (const Tiling& end : to)
        elements.push_back(detail_ == Detail::classes
                               ? least_moved(mesh_, key.shape, begin, end)
                               : tiling::elements_moved(mesh_, {key.shape, key.units}, begin, end));
      row = rows_.emplace(std::move(key), std::move(elements)).first;
    }
    for (std::int64_t elements : row->second) table.push_back(elements * factor);
  }
  return table;
}

std::int64_t largest_block_bytes(const graph::Tensor& tensor, const Tiling& tiling, const tiling::Mesh& mesh) {
  // Dims are split by different cuts, so some rank has the largest range of every dim.
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::int64_t parts = 1, unit = 1;
    for (std::size_t cut = 0; cut < tiling.size(); ++cut)
      if (tiling[cut].kind == tiling::Kind::split && tiling[cut].dim == static_cast<int>(d)) {
        parts *= mesh.cuts[cut];
        unit = tiling[cut].unit;
      }
    std::int64_t largest = 0;
    for (std::int64_t j = 0; j < parts; ++j) {
      const tiling::Range range = tiling::block_range(tensor.shape[d], unit, parts, j);
      largest = std::max(largest, range.end - range.begin);
    }
    elements *= largest;
  }
  return elements * size_of(tensor.dtype);
}

} // namespace soybean::plan
