#include "tiling/overlap.hpp"

#include <algorithm>
#include <array>

namespace soybean::tiling {

namespace {

constexpr int no_dim = -1;

int split_dim(const Entry& entry) {
  return entry.kind == Kind::split ? entry.dim : no_dim;
}

/// A dim as the two tilings (0 and 1) cut it.
struct Axis {
  std::int64_t extent = 0;
  std::array<std::int64_t, 2> unit{1, 1};
  std::array<int, 2> parts{1, 1};
  std::array<std::size_t, 2> first{0, 0}; ///< where its blocks' boundaries begin in Counting::boundaries
  std::array<int, 2> index{0, 0};         ///< the block a rank holds, while ranks are visited
  int component = 0;                      ///< dims that share a cut have the same
};

/// A cut that splits something: what its coordinate adds to the block index of a dim, for each tiling.
struct Axes {
  int parts;
  std::array<int, 2> dim;
  std::array<int, 2> stride{1, 1};
};

class Counting {
public:
  Counting(const Mesh& mesh, const Shape& shape, const Tiling& a, const Tiling& b);
  std::int64_t total();

private:
  void join(int a, int b);
  void list_boundaries(Axis& axis, std::size_t side);
  std::int64_t component_total(int component);

  std::int64_t factor_ = 1; ///< of cuts that split nothing
  std::vector<Axis> axes_;
  std::vector<Axes> cuts_;
  std::vector<std::int64_t> boundaries_;
};

Counting::Counting(const Mesh& mesh, const Shape& shape, const Tiling& a, const Tiling& b) : axes_(shape.size()) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    axes_[d].extent = shape[d];
    axes_[d].component = static_cast<int>(d);
  }
  cuts_.reserve(mesh.cuts.size());
  for (std::size_t i = mesh.cuts.size(); i-- > 0;) { // innermost first
    Axes cut{mesh.cuts[i], {split_dim(a[i]), split_dim(b[i])}};
    if (cut.dim[0] == no_dim && cut.dim[1] == no_dim) {
      factor_ *= cut.parts;
      continue;
    }
    for (std::size_t side = 0; side < 2; ++side) {
      if (cut.dim[side] == no_dim) continue;
      Axis& axis = axes_[static_cast<std::size_t>(cut.dim[side])];
      cut.stride[side] = axis.parts[side];
      axis.parts[side] *= cut.parts;
      axis.unit[side] = (side == 0 ? a : b)[i].unit;
    }
    if (cut.dim[0] != no_dim && cut.dim[1] != no_dim) join(cut.dim[0], cut.dim[1]);
    cuts_.push_back(cut);
  }
  for (Axis& axis : axes_)
    for (std::size_t side = 0; side < 2; ++side) list_boundaries(axis, side);
}

void Counting::join(int a, int b) {
  const int from = axes_[static_cast<std::size_t>(a)].component, to = axes_[static_cast<std::size_t>(b)].component;
  if (from == to) return;
  for (Axis& axis : axes_)
    if (axis.component == from) axis.component = to;
}

void Counting::list_boundaries(Axis& axis, std::size_t side) {
  axis.first[side] = boundaries_.size();
  const int parts = axis.parts[side];
  boundaries_.push_back(0);
  if (parts > 1) {
    const std::int64_t unit = axis.unit[side], units = axis.extent / unit;
    for (int j = 1; j < parts; ++j) boundaries_.push_back(unit * (j * units / parts));
  }
  boundaries_.push_back(axis.extent);
}

/// The sum over the coordinates of the component's cuts of the product of its dims' overlaps.
std::int64_t Counting::component_total(int component) {
  const auto in_component = [&](const Axes& cut) {
    const int d = cut.dim[0] != no_dim ? cut.dim[0] : cut.dim[1];
    return axes_[static_cast<std::size_t>(d)].component == component;
  };
  int combinations = 1;
  for (const Axes& cut : cuts_)
    if (in_component(cut)) combinations *= cut.parts;
  std::int64_t sum = 0;
  for (int c = 0; c < combinations; ++c) {
    for (Axis& axis : axes_) axis.index = {0, 0};
    int rest = c;
    for (const Axes& cut : cuts_) {
      if (!in_component(cut)) continue;
      const int coordinate = rest % cut.parts;
      rest /= cut.parts;
      for (std::size_t side = 0; side < 2; ++side)
        if (cut.dim[side] != no_dim)
          axes_[static_cast<std::size_t>(cut.dim[side])].index[side] += coordinate * cut.stride[side];
    }
    std::int64_t product = 1;
    for (const Axis& axis : axes_) {
      if (axis.component != component) continue;
      const std::int64_t* mine = &boundaries_[axis.first[0] + static_cast<std::size_t>(axis.index[0])];
      const std::int64_t* theirs = &boundaries_[axis.first[1] + static_cast<std::size_t>(axis.index[1])];
      product *= std::max<std::int64_t>(0, std::min(mine[1], theirs[1]) - std::max(mine[0], theirs[0]));
    }
    sum += product;
  }
  return sum;
}

std::int64_t Counting::total() {
  std::int64_t product = factor_;
  for (std::size_t d = 0; d < axes_.size(); ++d) {
    const Axis& axis = axes_[d];
    const bool leads = std::ranges::none_of(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(d),
                                            [&](const Axis& other) { return other.component == axis.component; });
    if (leads) product *= component_total(axis.component);
  }
  return product;
}

} // namespace

std::int64_t held_elements(const Mesh& mesh, const Shape& shape, const Tiling& tiling) {
  std::int64_t copies = 1;
  for (std::size_t cut = 0; cut < tiling.size(); ++cut)
    if (tiling[cut].kind != Kind::split) copies *= mesh.cuts[cut];
  return copies * volume(shape);
}

std::int64_t overlap(const Mesh& mesh, const Shape& shape, const Tiling& a, const Tiling& b) {
  return Counting(mesh, shape, a, b).total();
}

} // namespace soybean::tiling
