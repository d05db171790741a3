#include "plan/move_costs.hpp"

#include "base/error.hpp"
#include "tiling/redistribution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace soybean::plan {

using tiling::Tiling;

namespace {

/// Appends the bytes of a number that says what elements depend on.
void append(std::string& key, std::int64_t number) {
  std::array<char, sizeof number> bytes;
  std::memcpy(bytes.data(), &number, sizeof number);
  key.append(bytes.data(), bytes.size());
}

void append(std::string& key, const Shape& shape, const Shape& units) {
  key.push_back(static_cast<char>(shape.size()));
  for (std::int64_t extent : shape) append(key, extent);
  for (std::int64_t unit : units) append(key, unit);
}

void append(std::string& key, const Tiling& tiling) {
  for (const tiling::Entry& entry : tiling) {
    key.push_back(static_cast<char>(entry.kind));
    key.push_back(static_cast<char>(entry.dim));
    if (entry.unit > 1) append(key, entry.unit);
    if (const tiling::Halo& halo = entry.halo; halo.reach != tiling::Reach::none) {
      for (std::int64_t number : {halo.other, halo.stride, halo.kernel, halo.dilation, halo.padding})
        append(key, number);
      key.push_back(static_cast<char>(halo.reach));
      key.push_back('h');
      continue;
    }
    key.push_back(entry.unit > 1 ? 'u' : '1'); // so that keys of different tilings differ from behind
  }
}

} // namespace

MoveCosts::MoveCosts(tiling::Mesh mesh, Detail detail, const machine::Setting* machine)
    : mesh_(std::move(mesh)),
      ranks_(tiling::ranks(mesh_)),
      detail_(detail),
      machine_(machine),
      alike_(machine == nullptr ? mesh_.cuts : alike_cuts(*machine)) {
  if (machine != nullptr && detail == Detail::classes) least_time_.emplace(*machine);
}

std::int64_t MoveCosts::holding(std::int64_t bytes) const {
  return per_held_byte_ == 0 ? 0 : std::llround(per_held_byte_ * static_cast<double>(bytes));
}

/// Nanoseconds of a move.
std::int64_t MoveCosts::taken(const graph::Tensor& tensor, const Tiling& from, const Tiling& to) {
  if (from == to) return 0;
  key_.clear();
  append(key_, tensor.shape, tensor.units);
  append(key_, from);
  append(key_, to);
  key_.push_back(static_cast<char>(size_of(tensor.dtype)));
  const auto [known, fresh] = known_.try_emplace(key_, 0);
  if (fresh)
    known->second = least_time_ ? least_time_->moving(tensor, from, to) : moving_time(*machine_, tensor, from, to);
  return known->second;
}

/// Elements moved are proportional to the extent of a dim that the cuts divide evenly: such extents are replaced by the
/// smallest that do the same. A dim neither tiling splits matters only on the way out of a partial tiling.
std::int64_t MoveCosts::moved(const graph::Tensor& tensor, const Tiling& from, const Tiling& to) {
  if (from == to) return 0;
  const std::size_t dims = tensor.shape.size();
  std::uint64_t split = tiling::has_partial(from) ? ~std::uint64_t{0} : 0, uneven = 0;
  for (const Tiling* tiling : {&from, &to})
    for (const tiling::Entry& entry : *tiling) {
      if (entry.kind != tiling::Kind::split) continue;
      split |= std::uint64_t{1} << entry.dim;
      if (entry.unit != 1 || entry.halo.reach != tiling::Reach::none) uneven |= std::uint64_t{1} << entry.dim;
    }
  Shape shape = tensor.shape, units = tensor.units;
  std::int64_t factor = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    const std::int64_t least = (split >> d & 1) != 0 ? ranks_ : 1;
    if ((uneven >> d & 1) != 0 || shape[d] % (least * units[d]) != 0) continue;
    factor *= shape[d] / least;
    shape[d] = least;
    units[d] = 1;
  }
  key_.clear();
  append(key_, shape, units);
  append(key_, from);
  append(key_, to);
  const auto [known, fresh] = known_.try_emplace(key_, 0);
  if (fresh)
    known->second = detail_ == Detail::classes ? least_moved(mesh_, shape, from, to)
                                               : tiling::elements_moved(mesh_, {shape, units}, from, to);
  return known->second * factor;
}

const std::vector<std::int64_t>& MoveCosts::table(const graph::Tensor& tensor, const std::vector<Tiling>& from,
                                                  const std::vector<Tiling>& to) {
  std::string key;
  append(key, tensor.shape, tensor.units);
  const std::int64_t size = graph::is_control(tensor.role) && machine_ == nullptr ? 0 : size_of(tensor.dtype);
  append(key, static_cast<std::int64_t>(from.size()));
  append(key, size);
  for (const Tiling& tiling : from) append(key, tiling);
  for (const Tiling& tiling : to) append(key, tiling);
  const auto [known, fresh] = tables_.try_emplace(std::move(key));
  std::vector<std::int64_t>& table = known->second;
  if (!fresh) return table;
  table.reserve(from.size() * to.size());
  for (const Tiling& begin : from)
    for (const Tiling& end : to)
      table.push_back(machine_ == nullptr ? size * moved(tensor, begin, end) : taken(tensor, begin, end));
  return table;
}

std::int64_t largest_block_bytes(const graph::Tensor& tensor, const Tiling& tiling, const tiling::Mesh& mesh) {
  // The last block of a dim is its largest, and the last rank has that of every dim; with halos it may be another.
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::int64_t parts = 1;
    tiling::Entry split = tiling::split(static_cast<int>(d));
    for (std::size_t cut = 0; cut < tiling.size(); ++cut)
      if (tiling[cut].kind == tiling::Kind::split && tiling[cut].dim == static_cast<int>(d)) {
        parts *= mesh.cuts[cut];
        split = tiling[cut];
      }
    std::int64_t largest = 0;
    for (std::int64_t j = split.halo.reach == tiling::Reach::none ? parts - 1 : 0; j < parts; ++j) {
      const tiling::Range range = tiling::part_range(split, tensor.shape[d], parts, j);
      largest = std::max(largest, range.end - range.begin);
    }
    elements *= largest;
  }
  return elements * size_of(tensor.dtype);
}

} // namespace soybean::plan
