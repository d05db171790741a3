#pragma once
// What moves between tilings cost (bytes or, on a machine, nanoseconds), in bulk and memoised; or, of classes of
// tilings, the least they can. Hides that shapes whose dims all cuts divide evenly share elements moved up to a factor.
// Called inside src/plan only.
#include "base/types.hpp"
#include "graph/graph.hpp"
#include "machine/time.hpp"
#include "plan/classes.hpp"
#include "plan/step_time.hpp"
#include "tiling/mesh.hpp"
#include "tiling/tiling.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace soybean::plan {

enum class Detail : std::uint8_t {
  exact,   ///< tilings as they are
  classes, ///< tilings stand for their classes (classes.hpp)
};

class MoveCosts {
public:
  /// Bytes; with a `machine`, of that mesh, which has to stay: nanoseconds.
  explicit MoveCosts(tiling::Mesh mesh, Detail detail = Detail::exact, const machine::Setting* machine = nullptr);

  const tiling::Mesh& mesh() const { return mesh_; }
  Detail detail() const { return detail_; }
  const machine::Setting* machine() const { return machine_; }
  const Alike& alike() const { return alike_; } ///< cuts whose order classes leave open
  /// What bytes of the fullest rank cost on top of moves: `per_byte` is 0 at first.
  void charge(double per_byte) { per_held_byte_ = per_byte; }
  double per_held_byte() const { return per_held_byte_; }
  std::int64_t holding(std::int64_t bytes) const;

  /// The price of each pair: result[i * to.size() + j] for from[i] → to[j]. Bytes are those that all ranks together
  /// receive, none of control traffic. Targets are partial-free.
  const std::vector<std::int64_t>& table(const graph::Tensor& tensor, const std::vector<tiling::Tiling>& from,
                                         const std::vector<tiling::Tiling>& to);

private:
  std::int64_t moved(const graph::Tensor& tensor, const tiling::Tiling& from, const tiling::Tiling& to);
  std::int64_t taken(const graph::Tensor& tensor, const tiling::Tiling& from, const tiling::Tiling& to);

  tiling::Mesh mesh_;
  std::int64_t ranks_;
  Detail detail_;
  const machine::Setting* machine_;
  Alike alike_;
  double per_held_byte_ = 0;
  std::optional<LeastTime> least_time_; ///< of classes on a machine
  // By all that they depend on, as bytes.
  std::unordered_map<std::string, std::int64_t> known_;
  std::unordered_map<std::string, std::vector<std::int64_t>> tables_;
  std::string key_; ///< of the move at hand
};

/// Bytes of the largest block any rank holds of the tensor.
std::int64_t largest_block_bytes(const graph::Tensor& tensor, const tiling::Tiling& tiling, const tiling::Mesh& mesh);

} // namespace soybean::plan
