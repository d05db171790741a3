#include "tiling/overlap.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
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
  std::array<std::size_t, 2> first{0, 0};    ///< where its blocks begin in Counting::ranges
  std::array<int, 2> index{0, 0};            ///< while coordinates are visited: the first block of those known so far,
  std::array<int, 2> width{1, 1};            ///< and how many they are
  std::array<std::uint64_t, 2> digits{0, 0}; ///< of its block numbers, a bit for each, the outermost the lowest
  int component = 0;                         ///< dims that share a cut have the same

  bool has_halo() const { return entry[0].halo.reach != Reach::none || entry[1].halo.reach != Reach::none; }
};

/// A cut that splits something: what its coordinate adds to the block index of a dim, for each tiling.
struct Axes {
  int parts;
  std::array<int, 2> dim;
  std::array<int, 2> stride{1, 1};
};

/// The digits of all cuts' coordinates, read as numbers in mixed radix whose digits are primes.
class Digits {
public:
  /// Those of a number of so many values, a bit for each.
  std::uint64_t add(int values) {
    std::uint64_t added = 0;
    for (int prime = 2; values > 1; ++prime)
      for (; values % prime == 0; values /= prime) {
        added |= std::uint64_t{1} << count_;
        digits_[count_] = {prime, count_, false};
        ++count_;
      }
    return added;
  }
  /// Only where the two are equal is counted. False: they are of different primes.
  bool equate(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    if (digits_[a].prime != digits_[b].prime) return false;
    digits_[std::max(a, b)].same_as = std::min(a, b);
    return true;
  }
  /// What differs by the digit is added up already. False: twice.
  bool add_up(std::size_t digit) { return !std::exchange(digits_[digit].added_up, true); }
  /// Multiplies by the number of values of all that is free. False: what was added up had to equal something.
  bool multiply(std::int64_t& total) const {
    for (std::size_t k = 0; k < count_; ++k) {
      const std::size_t same = root(k);
      const bool follows = same != k;
      if (follows && (digits_[k].added_up || digits_[same].added_up)) return false;
      if (!follows && !digits_[k].added_up) total *= digits_[k].prime;
    }
    return true;
  }

private:
  struct Digit {
    int prime;
    std::size_t same_as; ///< an earlier digit that has to be equal; its own number where it is free
    bool added_up;
  };
  std::size_t root(std::size_t digit) const {
    while (digits_[digit].same_as != digit) digit = digits_[digit].same_as;
    return digit;
  }
  std::array<Digit, 64> digits_; ///< ranks are counted by an int
  std::size_t count_ = 0;
};

/// Takes the lowest bit.
std::size_t next_digit(std::uint64_t& digits) {
  const int lowest = std::countr_zero(digits);
  digits &= digits - 1;
  return static_cast<std::size_t>(lowest);
}

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
  bool by_digits(std::int64_t& total);

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
  const Entry& entry = axis.entry[side];
  axis.width[side] = parts;
  if (parts == 1) return ranges_.push_back({0, axis.extent});
  if (entry.halo.reach != Reach::none) {
    for (int j = 0; j < parts; ++j) ranges_.push_back(part_range(entry, axis.extent, parts, j));
    return;
  }
  // Where block j begins, j * units / parts, without a division for each.
  const std::int64_t units = axis.extent / entry.unit, whole = units / parts, more = units % parts;
  std::int64_t begin = 0, left = 0;
  for (int j = 0; j < parts; ++j) {
    left += more;
    const std::int64_t end = begin + whole + (left >= parts ? 1 : 0);
    if (left >= parts) left -= parts;
    ranges_.push_back({entry.unit * begin, j + 1 == parts ? axis.extent : entry.unit * end});
    begin = end;
  }
}

/// Where all blocks of a dim are equal, and those of one tiling nest in those of the other, two blocks overlap exactly
/// if the leading digits of their numbers are the same. So the ranks whose blocks overlap are counted by the digits
/// that remain free, and each holds as much as the smaller block. Where blocks are not equal but those of one tiling
/// consist of the other's, digit by digit, the smaller ones add up to the extent. False: it is neither.
bool Counting::by_digits(std::int64_t& total) {
  Digits digits;
  for (auto cut = cuts_.rbegin(); cut != cuts_.rend(); ++cut) {
    const std::uint64_t added = digits.add(cut->parts);
    for (std::size_t side = 0; side < 2; ++side)
      if (cut->dim[side] != no_dim) axes_[static_cast<std::size_t>(cut->dim[side])].digits[side] |= added;
  }
  total = factor_;
  for (const Axis& axis : axes_) {
    std::uint64_t mine = axis.digits[0], theirs = axis.digits[1];
    if (axis.has_halo()) return false;
    const auto even = [&](std::size_t side) { return axis.extent % (axis.entry[side].unit * axis.parts[side]) == 0; };
    if (even(0) && even(1)) {
      while (mine != 0 && theirs != 0)
        if (!digits.equate(next_digit(mine), next_digit(theirs))) return false;
      total *= axis.extent / std::max(axis.parts[0], axis.parts[1]);
      continue;
    }
    if (mine != 0 && theirs != 0 && axis.entry[0].unit != axis.entry[1].unit) return false;
    while (mine != 0 || theirs != 0) {
      const bool both = mine != 0 && theirs != 0;
      const std::size_t digit = next_digit(mine != 0 ? mine : theirs);
      if ((both && next_digit(theirs) != digit) || !digits.add_up(digit)) return false;
    }
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
  if (const Axis& axis = *within_[0];
      within_.size() == 1 && !axis.has_halo() && (axis.parts[0] == 1 || axis.parts[1] == 1))
    return axis.extent; // blocks of one tiling alone add up to it
  ranges_.clear();
  for (Axis* axis : within_)
    for (std::size_t side = 0; side < 2; ++side) list_ranges(*axis, side);
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
  product = factor_;
  for (std::size_t d = 0; d < axes_.size(); ++d) {
    const auto leads = [&] {
      return std::none_of(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(d),
                          [&](const Axis& other) { return other.component == axes_[d].component; });
    };
    if (leads()) product *= component_total(axes_[d].component);
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
