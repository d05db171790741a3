#include "tiling/overlap.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace soybean::tiling {

namespace {

constexpr int no_dim = -1;

int split_dim(const Entry& entry) {
  return entry.kind == Kind::split ? entry.dim : no_dim;
}

/// A dim as the two tilings (0 and 1) cut it.
struct Axis {
  std::int64_t extent = 0;
  std::array<Entry, 2> entry{replicate(), replicate()};
  std::array<int, 2> parts{1, 1};
  std::array<std::size_t, 2> first{0, 0}; ///< where its blocks begin in Counting::ranges
  std::array<int, 2> index{0, 0};         ///< while coordinates are visited: the first block of those known so far,
  std::array<int, 2> width{1, 1};         ///< and how many they are
  int component = 0;                      ///< dims that share a cut have the same
};

/// A cut that splits something: what its coordinate adds to the block index of a dim, for each tiling.
struct Axes {
  int parts;
  std::array<int, 2> dim;
  std::array<int, 2> stride{1, 1};
};

std::vector<int> primes_of(int number) {
  std::vector<int> primes;
  for (int prime = 2; number > 1; ++prime)
    for (; number % prime == 0; number /= prime) primes.push_back(prime);
  return primes;
}

/// The digits of all cuts' coordinates, read as numbers in mixed radix whose digits are primes.
class Digits {
public:
  int add(int prime) {
    const int number = static_cast<int>(digits_.size());
    digits_.push_back({prime, number});
    return number;
  }
  /// Only where the two are equal is counted. False: they are of different primes.
  bool equate(int a, int b) {
    a = root(a);
    b = root(b);
    if (digits_[static_cast<std::size_t>(a)].prime != digits_[static_cast<std::size_t>(b)].prime) return false;
    digits_[static_cast<std::size_t>(std::max(a, b))].same_as = std::min(a, b);
    return true;
  }
  /// What differs by the digit is added up already. False: twice.
  bool add_up(int digit) { return !std::exchange(digits_[static_cast<std::size_t>(digit)].added_up, true); }
  /// Multiplies by the number of values of all that is free. False: what was added up had to equal something.
  bool multiply(std::int64_t& total) const {
    for (std::size_t k = 0; k < digits_.size(); ++k) {
      const int same = root(static_cast<int>(k));
      const bool follows = same != static_cast<int>(k);
      if (follows && (digits_[k].added_up || digits_[static_cast<std::size_t>(same)].added_up)) return false;
      if (!follows && !digits_[k].added_up) total *= digits_[k].prime;
    }
    return true;
  }

private:
  struct Digit {
    int prime;
    int same_as; ///< an earlier digit that has to be equal; its own number where it is free
    bool added_up = false;
  };
  int root(int digit) const {
    while (digits_[static_cast<std::size_t>(digit)].same_as != digit)
      digit = digits_[static_cast<std::size_t>(digit)].same_as;
    return digit;
  }
  std::vector<Digit> digits_;
};

class Counting {
public:
  Counting(const Mesh& mesh, const Shape& shape, const Tiling& a, const Tiling& b);
  std::int64_t total();

private:
  void join(int a, int b);
  void list_ranges(Axis& axis, std::size_t side);
  std::int64_t component_total(int component);
  Range spanned(const Axis& axis, std::size_t side) const;
  std::int64_t shared(const Axis& axis) const;
  std::int64_t descend(std::size_t level);
  bool by_digits(std::int64_t& total) const;

  std::int64_t factor_ = 1; ///< of cuts that split nothing
  std::vector<Axis> axes_;
  std::vector<Axes> cuts_; ///< innermost first
  std::vector<Range> ranges_;
  std::vector<Axes> visited_; ///< of the component at hand, outermost first
  std::vector<Axis*> within_; ///< its dims
};

Counting::Counting(const Mesh& mesh, const Shape& shape, const Tiling& a, const Tiling& b) : axes_(shape.size()) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    axes_[d].extent = shape[d];
    axes_[d].component = static_cast<int>(d);
  }
  cuts_.reserve(mesh.cuts.size());
  for (std::size_t i = mesh.cuts.size(); i-- > 0;) {
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
      axis.entry[side] = (side == 0 ? a : b)[i];
    }
    cuts_.push_back(cut);
  }
}

void Counting::join(int a, int b) {
  const int from = axes_[static_cast<std::size_t>(a)].component, to = axes_[static_cast<std::size_t>(b)].component;
  if (from == to) return;
  for (Axis& axis : axes_)
    if (axis.component == from) axis.component = to;
}

void Counting::list_ranges(Axis& axis, std::size_t side) {
  axis.first[side] = ranges_.size();
  const int parts = axis.parts[side];
  axis.width[side] = parts;
  if (parts == 1) ranges_.push_back({0, axis.extent});
  for (int j = 0; parts > 1 && j < parts; ++j) ranges_.push_back(part_range(axis.entry[side], axis.extent, parts, j));
}

/// Where all blocks of a dim are equal, and those of one tiling nest in those of the other, two blocks overlap exactly
/// if the leading digits of their numbers are the same. So the ranks whose blocks overlap are counted by the digits
/// that remain free, and each holds as much as the smaller block. Where blocks are not equal but those of one tiling
/// consist of the other's, digit by digit, the smaller ones add up to the extent. False: it is neither.
bool Counting::by_digits(std::int64_t& total) const {
  Digits digits;
  std::vector<std::array<std::vector<int>, 2>> of(axes_.size()); // of the block numbers of each dim, outermost first
  for (auto cut = cuts_.rbegin(); cut != cuts_.rend(); ++cut)
    for (const int prime : primes_of(cut->parts)) {
      const int number = digits.add(prime);
      for (std::size_t side = 0; side < 2; ++side)
        if (cut->dim[side] != no_dim) of[static_cast<std::size_t>(cut->dim[side])][side].push_back(number);
    }
  total = factor_;
  for (std::size_t d = 0; d < axes_.size(); ++d) {
    const Axis& axis = axes_[d];
    const auto& [mine, theirs] = of[d];
    if (has_halo({axis.entry[0], axis.entry[1]})) return false;
    const auto even = [&](std::size_t side) { return axis.extent % (axis.entry[side].unit * axis.parts[side]) == 0; };
    const std::size_t common = std::min(mine.size(), theirs.size());
    if (even(0) && even(1)) {
      for (std::size_t k = 0; k < common; ++k)
        if (!digits.equate(mine[k], theirs[k])) return false;
      total *= axis.extent / std::max(axis.parts[0], axis.parts[1]);
      continue;
    }
    if (common > 0 && axis.entry[0].unit != axis.entry[1].unit) return false;
    if (!std::equal(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(common), theirs.begin())) return false;
    for (const int digit : mine.size() > theirs.size() ? mine : theirs)
      if (!digits.add_up(digit)) return false;
    total *= axis.extent;
  }
  return digits.multiply(total);
}

/// The sum over the coordinates of the component's cuts of the product of its dims' overlaps.
std::int64_t Counting::component_total(int component) {
  visited_.clear();
  for (auto cut = cuts_.rbegin(); cut != cuts_.rend(); ++cut)
    if (axes_[static_cast<std::size_t>(cut->dim[0] != no_dim ? cut->dim[0] : cut->dim[1])].component == component)
      visited_.push_back(*cut);
  within_.clear();
  for (Axis& axis : axes_)
    if (axis.component == component) within_.push_back(&axis);
  return descend(0);
}

/// What the blocks span of which the leading digits are known so far. Ranges with halos need not ascend: all, until one
/// is left.
Range Counting::spanned(const Axis& axis, std::size_t side) const {
  const Range* first = &ranges_[axis.first[side] + static_cast<std::size_t>(axis.index[side])];
  if (axis.width[side] > 1 && axis.entry[side].halo.reach != Reach::none) return {0, axis.extent};
  return {first->begin, first[axis.width[side] - 1].end};
}

/// What the dim's blocks share.
std::int64_t Counting::shared(const Axis& axis) const {
  const Range mine = spanned(axis, 0), theirs = spanned(axis, 1);
  return std::min(mine.end, theirs.end) - std::max(mine.begin, theirs.begin);
}

/// Over the coordinates of the cuts from the given one on, the outermost first: where larger blocks share nothing, none
/// of the blocks inside them do.
std::int64_t Counting::descend(std::size_t level) {
  if (level == visited_.size()) {
    std::int64_t product = 1;
    for (const Axis* axis : within_) product *= shared(*axis);
    return product;
  }
  const Axes& cut = visited_[level];
  std::array<Axis*, 2> axis{nullptr, nullptr};
  for (std::size_t side = 0; side < 2; ++side)
    if (cut.dim[side] != no_dim) axis[side] = &axes_[static_cast<std::size_t>(cut.dim[side])];
  for (std::size_t side = 0; side < 2; ++side)
    if (axis[side]) axis[side]->width[side] /= cut.parts;
  std::int64_t sum = 0;
  for (int coordinate = 0; coordinate < cut.parts; ++coordinate) {
    bool some = true;
    for (std::size_t side = 0; side < 2; ++side) some = some && (!axis[side] || shared(*axis[side]) > 0);
    if (some) sum += descend(level + 1);
    for (std::size_t side = 0; side < 2; ++side)
      if (axis[side]) axis[side]->index[side] += cut.stride[side];
  }
  for (std::size_t side = 0; side < 2; ++side)
    if (axis[side]) {
      axis[side]->index[side] -= cut.parts * cut.stride[side];
      axis[side]->width[side] *= cut.parts;
    }
  return sum;
}

std::int64_t Counting::total() {
  std::int64_t product = factor_;
  if (by_digits(product)) return product;
  for (const Axes& cut : cuts_)
    if (cut.dim[0] != no_dim && cut.dim[1] != no_dim) join(cut.dim[0], cut.dim[1]);
  for (Axis& axis : axes_)
    for (std::size_t side = 0; side < 2; ++side) list_ranges(axis, side);
  product = factor_;
  for (std::size_t d = 0; d < axes_.size(); ++d) {
    const Axis& axis = axes_[d];
    const bool leads = std::ranges::none_of(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(d),
                                            [&](const Axis& other) { return other.component == axis.component; });
    if (leads) product *= component_total(axis.component);
  }
  return product;
}

/// Elements of a dim in all its parts together.
std::int64_t all_parts(const Entry& entry, std::int64_t extent, int parts) {
  std::int64_t sum = 0;
  for (int j = 0; j < parts; ++j) {
    const Range range = part_range(entry, extent, parts, j);
    sum += range.end - range.begin;
  }
  return sum;
}

} // namespace

std::int64_t held_elements(const Mesh& mesh, const Shape& shape, const Tiling& tiling) {
  std::int64_t copies = 1;
  for (std::size_t cut = 0; cut < tiling.size(); ++cut)
    if (tiling[cut].kind != Kind::split) copies *= mesh.cuts[cut];
  std::int64_t elements = copies;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto halo = std::ranges::find_if(
        tiling, [&](const Entry& e) { return e.halo.reach != Reach::none && e.dim == static_cast<std::int32_t>(d); });
    elements *= halo == tiling.end() ? shape[d] : all_parts(*halo, shape[d], parts(tiling, mesh, halo->dim));
  }
  return elements;
}

std::int64_t overlap(const Mesh& mesh, const Shape& shape, const Tiling& a, const Tiling& b) {
  return Counting(mesh, shape, a, b).total();
}

} // namespace soybean::tiling
