#include "plan/move_costs.hpp"

#include "base/error.hpp"
#include "tiling/redistribution.hpp"

#include <algorithm>

namespace soybean::plan {

using tiling::Tiling;

/// Where every dim that is split divides evenly, elements moved are proportional to the volume: replaces the shape by
/// the smallest that does the same and returns the factor; 1 and nothing changed otherwise.
std::int64_t MoveCosts::reduce(Key& key) const {
  const std::int64_t ranks = tiling::ranks(mesh_);
  std::vector<char> split(key.shape.size(), 0);
  for (const std::vector<Tiling>* tilings : {&key.from, &key.to})
    for (const Tiling& tiling : *tilings)
      for (const tiling::Entry& entry : tiling) {
        if (entry.kind != tiling::Kind::split) continue;
        if (entry.unit != 1 || key.shape[entry.dim] % (ranks * key.units[entry.dim]) != 0) return 1;
        split[entry.dim] = 1;
      }
  if (key.shape.empty()) return 1;
  const std::int64_t before = volume(key.shape);
  for (std::size_t d = 0; d < split.size(); ++d) key.shape[d] = split[d] ? ranks : 1;
  std::fill(key.units.begin(), key.units.end(), 1);
  return before / volume(key.shape);
}

std::vector<std::int64_t> MoveCosts::table(const graph::Tensor& tensor, const std::vector<Tiling>& from,
                                           const std::vector<Tiling>& to) {
  Key key{tensor.shape, tensor.units, from, to};
  const std::int64_t factor = reduce(key);
  auto found = tables_.find(key);
  if (found == tables_.end()) {
    std::vector<std::int64_t> elements;
    elements.reserve(from.size() * to.size());
    for (const Tiling& a : from)
      for (const Tiling& b : to)
        elements.push_back(a == b ? 0 : tiling::elements_moved(mesh_, {key.shape, key.units}, a, b));
    found = tables_.emplace(std::move(key), std::move(elements)).first;
  }
  std::vector<std::int64_t> scaled = found->second;
  for (std::int64_t& elements : scaled) elements *= factor;
  return scaled;
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
