#pragma once
// Ranks as plain arrays: applies the steps of a redistribution literally to integer data and counts what arrives.
#include "tiling/redistribution.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace soybean::tiling {

/// What one rank holds of a tensor.
struct Holding {
  Box box;
  std::vector<std::int64_t> values; ///< of the box, row by row
};

/// Calls f with every index of a box, row by row.
template<class F>
void for_each_index(const Box& box, F&& f) {
  if (empty(box)) return;
  Shape index = box.offsets;
  for (;;) {
    f(index);
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == box.offsets[d - 1] + box.extents[d - 1]) {
      index[d - 1] = box.offsets[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

inline std::int64_t& value_at(Holding& holding, const Shape& index) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < index.size(); ++d) {
    EXPECT_GE(index[d], holding.box.offsets[d]);
    EXPECT_LT(index[d], holding.box.offsets[d] + holding.box.extents[d]);
    position = position * holding.box.extents[d] + index[d] - holding.box.offsets[d];
  }
  return holding.values.at(static_cast<std::size_t>(position));
}

/// An arbitrary number for one element of one term of a sum.
inline std::int64_t term(int which, const Shape& index) {
  std::uint64_t h = 1469598103934665603u + static_cast<std::uint64_t>(which);
  for (std::int64_t i : index) h = (h ^ static_cast<std::uint64_t>(i)) * 1099511628211u + 17;
  return static_cast<std::int64_t>(h >> 40);
}

class SimulatedRanks {
public:
  /// Ranks that hold blocks of `tiling`. Ranks that differ in a partial cut hold different terms, others copies.
  SimulatedRanks(const Mesh& mesh, const Shape& shape, const Tiling& tiling) : mesh_(mesh), shape_(shape) {
    for (int rank = 0; rank < ranks(mesh); ++rank) {
      Holding holding = room(tiling, rank);
      for_each_index(holding.box, [&](const Shape& i) { value_at(holding, i) = term(term_of(tiling, rank), i); });
      holdings_.push_back(std::move(holding));
    }
  }

  /// Performs one step; returns the elements received by all ranks.
  std::int64_t apply(const Step& step) {
    std::vector<Holding> next;
    std::int64_t received = 0;
    for (int rank = 0; rank < ranks(mesh_); ++rank) {
      EXPECT_EQ(at(rank).box, block(step.from, shape_, mesh_, rank));
      next.push_back(room(step.to, rank));
      received += step.kind == StepKind::exchange ? receive(step, rank, next.back())
                  : step.kind == StepKind::slice  ? slice(step, rank, next.back())
                                                  : reduce(step, rank, next.back());
    }
    holdings_ = std::move(next);
    return received;
  }

  /// Every rank holds its block of the summed tensor.
  void expect_summed(const Tiling& from, const Tiling& to) {
    std::vector<int> terms;
    terms.reserve(static_cast<std::size_t>(ranks(mesh_)));
    for (int rank = 0; rank < ranks(mesh_); ++rank) terms.push_back(term_of(from, rank));
    std::ranges::sort(terms);
    terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
    for (int rank = 0; rank < ranks(mesh_); ++rank) {
      ASSERT_EQ(at(rank).box, block(to, shape_, mesh_, rank));
      for_each_index(at(rank).box, [&](const Shape& i) {
        std::int64_t sum = 0;
        for (int which : terms) sum += term(which, i);
        ASSERT_EQ(value_at(at(rank), i), sum);
      });
    }
  }

private:
  Holding& at(int rank) { return holdings_[static_cast<std::size_t>(rank)]; }
  Holding room(const Tiling& tiling, int rank) const {
    const Box box = block(tiling, shape_, mesh_, rank);
    return {box, std::vector<std::int64_t>(static_cast<std::size_t>(volume(box)))};
  }
  int term_of(const Tiling& tiling, int rank) const {
    int which = 0;
    for (std::size_t cut = 0; cut < tiling.size(); ++cut)
      if (tiling[cut].kind == Kind::partial)
        which = which * mesh_.cuts[cut] + coordinate(mesh_, rank, static_cast<int>(cut));
    return which;
  }

  /// The members of the group hold copies, and keep different parts of them.
  std::int64_t slice(const Step& step, int rank, Holding& into) {
    std::int64_t kept = 0;
    for (int member : group(mesh_, rank, step.cut)) {
      EXPECT_EQ(at(member).values, at(rank).values);
      kept += volume(block(step.to, shape_, mesh_, member));
    }
    EXPECT_EQ(kept, volume(at(rank).box));
    for_each_index(into.box, [&](const Shape& i) { value_at(into, i) = value_at(at(rank), i); });
    return 0;
  }

  /// Each member gets the sums of its part, of which its own term is at hand; an all-reduce then gathers all parts, of
  /// which one is at hand.
  std::int64_t reduce(const Step& step, int rank, Holding& into) {
    const std::vector<int> members = group(mesh_, rank, step.cut, step.cuts);
    const auto parts = static_cast<std::int64_t>(members.size());
    std::int64_t kept = 0;
    for (int member : members) {
      EXPECT_EQ(at(member).box, at(rank).box);
      kept += volume(block(step.to, shape_, mesh_, member));
      for_each_index(into.box, [&](const Shape& i) { value_at(into, i) += value_at(at(member), i); });
    }
    const std::int64_t all = volume(at(rank).box);
    if (step.kind == StepKind::reduce_scatter) {
      EXPECT_EQ(kept, all);
      return (parts - 1) * volume(into.box);
    }
    EXPECT_EQ(kept, parts * all);
    const Range mine = block_range(all, 1, parts, coordinate(mesh_, rank, step.cut));
    return (parts - 1) * (mine.end - mine.begin) + all - (mine.end - mine.begin);
  }

  std::int64_t receive(const Step& step, int rank, Holding& into) {
    std::int64_t received = 0;
    std::vector<int> times(into.values.size());
    Holding* source = nullptr;
    for (const Piece& piece : exchange_pieces(mesh_, shape_, step.from, step.to, rank).receive) {
      source = &at(piece.peer);
      for_each_index(piece.box, [&](const Shape& i) {
        std::int64_t& value = value_at(into, i);
        value = value_at(*source, i);
        ++times[static_cast<std::size_t>(&value - into.values.data())];
      });
      if (piece.peer != rank) received += volume(piece.box);
    }
    for (int n : times) EXPECT_EQ(n, 1);
    return received;
  }

  const Mesh& mesh_;
  const Shape& shape_;
  std::vector<Holding> holdings_;
};

/// Runs the steps, checking the count of each and the sum at the end; returns the elements received.
inline std::int64_t simulate(const Mesh& mesh, const Shape& shape, const std::vector<Step>& steps, const Tiling& from,
                             const Tiling& to) {
  SimulatedRanks simulated(mesh, shape, from);
  std::int64_t received = 0;
  for (const Step& step : steps) {
    const std::int64_t elements = simulated.apply(step);
    EXPECT_EQ(elements, step.elements) << to_string(step.kind);
    received += elements;
  }
  simulated.expect_summed(from, to);
  return received;
}

} // namespace soybean::tiling
