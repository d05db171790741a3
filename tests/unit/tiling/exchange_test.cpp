#include "base/error.hpp"
#include "random_tilings.hpp"
#include "tiling/overlap.hpp"
#include "tiling/redistribution.hpp"

#include <gtest/gtest.h>

#include <map>

namespace {

using namespace soybean;
using namespace soybean::tiling;

std::string to_text(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += fmt::format("{}{} ", piece.peer, to_string(piece.box));
  return text;
}

TEST(ExchangePieces, AllToAll) {
  const ExchangePieces pieces = exchange_pieces({{3}}, {3, 4}, {split(0)}, {split(1)}, 1);
  EXPECT_EQ(to_text(pieces.receive), "0[0:1, 1:2] 1[1:2, 1:2] 2[2:3, 1:2] ");
  EXPECT_EQ(to_text(pieces.send), "0[1:2, 0:1] 1[1:2, 1:2] 2[1:2, 2:4] ");
}

TEST(ExchangePieces, CopiesAreTakenFromTheNearestHolder) {
  // Every rank lacks one half; both holders of it differ in cut 0, and the one that agrees in cut 1 is asked.
  const Mesh mesh{{2, 2}};
  EXPECT_EQ(to_text(exchange_pieces(mesh, {4}, {split(0), replicate()}, replicated(mesh), 1).receive),
            "1[0:2] 3[2:4] ");
  EXPECT_EQ(to_text(exchange_pieces(mesh, {4}, {split(0), replicate()}, replicated(mesh), 2).receive),
            "0[0:2] 2[2:4] ");
  // What a rank holds itself it asks nobody for.
  EXPECT_EQ(to_text(exchange_pieces(mesh, {4}, replicated(mesh), {split(0), replicate()}, 3).receive), "3[2:4] ");
  EXPECT_EQ(to_text(exchange_pieces(mesh, {4}, replicated(mesh), {split(0), replicate()}, 3).send), "3[2:4] ");
}

TEST(ExchangePieces, EmptyBlocksSendNothing) {
  // Two elements on four ranks: ranks 1 and 3 hold one each.
  const Mesh mesh{{4}};
  EXPECT_EQ(to_text(exchange_pieces(mesh, {2}, {split(0)}, {replicate()}, 0).receive), "1[0:1] 3[1:2] ");
  EXPECT_EQ(to_text(exchange_pieces(mesh, {2}, {split(0)}, {replicate()}, 0).send), "");
  EXPECT_EQ(to_text(exchange_pieces(mesh, {2}, {split(0)}, {replicate()}, 3).send), "0[1:2] 1[1:2] 2[1:2] 3[1:2] ");
}

TEST(ExchangePieces, PartialTilingsAreABug) {
  EXPECT_THROW(exchange_pieces({{2}}, {2}, {partial()}, {replicate()}, 0), Bug);
  EXPECT_THROW(exchange_pieces({{2}}, {2}, {replicate()}, {partial()}, 0), Bug);
}

TEST(ExchangePieces, ElementsFromOutsideAreThoseOfRanksBehindTheFirstCuts) {
  Draw draw(20);
  int outside = 0;
  for (int round = 0; round < 300; ++round) {
    const Mesh mesh = draw.one_of(test_meshes());
    const Shape shape = draw.shape(static_cast<int>(draw.number(1, 3)), 13), units = draw.units(shape);
    const Tiling from = normalise(draw.tiling(mesh, shape, units), shape, mesh);
    const Tiling to = normalise(draw.tiling(mesh, shape, units), shape, mesh);
    for (int cuts = 0; cuts <= static_cast<int>(mesh.cuts.size()); ++cuts) {
      std::int64_t expected = 0;
      for (int rank = 0; rank < ranks(mesh); ++rank)
        for (const Piece& piece : exchange_pieces(mesh, shape, from, to, rank).receive)
          for (int cut = 0; cut < cuts; ++cut)
            if (coordinate(mesh, piece.peer, cut) != coordinate(mesh, rank, cut)) {
              expected += volume(piece.box);
              break;
            }
      ASSERT_EQ(elements_from_outside(mesh, shape, from, to, cuts), expected)
          << to_string(mesh) << " " << to_string(shape) << " " << to_string(from) << " to " << to_string(to);
      outside += expected > 0;
    }
  }
  EXPECT_GT(outside, 100);
}

/// Cuts at the end of the mesh on which two ranks agree.
int shared_tail(const Mesh& mesh, int a, int b) {
  int shared = 0;
  for (int cut = static_cast<int>(mesh.cuts.size()) - 1; cut >= 0; --cut, ++shared)
    if (coordinate(mesh, a, cut) != coordinate(mesh, b, cut)) break;
  return shared;
}

struct Exchange {
  Mesh mesh;
  Shape shape;
  Tiling from, to;
};

Exchange draw_exchange(Draw& draw) {
  Exchange e{draw.one_of(test_meshes()), draw.shape(static_cast<int>(draw.number(1, 3)), draw.number(1, 14)), {}, {}};
  e.from = normalise(draw.tiling(e.mesh, e.shape, draw.units(e.shape)), e.shape, e.mesh);
  e.to = normalise(draw.tiling(e.mesh, e.shape, draw.units(e.shape)), e.shape, e.mesh);
  return e;
}

TEST(ExchangePieces, TileWhatIsNeededAndComeFromTheNearestHolders) {
  Draw draw(7);
  for (int round = 0; round < 1500; ++round) {
    const Exchange e = draw_exchange(draw);
    std::int64_t received = 0;
    for (int rank = 0; rank < ranks(e.mesh); ++rank) {
      const Box needed = block(e.to, e.shape, e.mesh, rank), held = block(e.from, e.shape, e.mesh, rank);
      const std::vector<Piece> pieces = exchange_pieces(e.mesh, e.shape, e.from, e.to, rank).receive;
      std::int64_t covered = 0;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece& piece = pieces[i];
        ASSERT_FALSE(empty(piece.box));
        ASSERT_TRUE(contains(needed, piece.box));
        ASSERT_TRUE(contains(block(e.from, e.shape, e.mesh, piece.peer), piece.box));
        ASSERT_EQ(piece.peer == rank, contains(held, piece.box));
        for (std::size_t k = 0; k < i; ++k) {
          ASSERT_LT(pieces[k].peer, piece.peer); // one message per pair of ranks
          ASSERT_TRUE(empty(intersect(pieces[k].box, piece.box)));
        }
        for (int other = 0; other < ranks(e.mesh); ++other)
          if (contains(block(e.from, e.shape, e.mesh, other), piece.box)) {
            ASSERT_GE(shared_tail(e.mesh, rank, piece.peer), shared_tail(e.mesh, rank, other));
          }
        covered += volume(piece.box);
        if (piece.peer != rank) received += volume(piece.box);
      }
      ASSERT_EQ(covered, volume(needed));
    }
    ASSERT_EQ(received, elements_moved(e.mesh, {e.shape, {}}, e.from, e.to));
  }
}

TEST(ExchangePieces, SendsMirrorReceives) {
  Draw draw(8);
  for (int round = 0; round < 800; ++round) {
    const Exchange e = draw_exchange(draw);
    std::map<std::pair<int, int>, std::string> sent, received; // by (sender, receiver)
    for (int rank = 0; rank < ranks(e.mesh); ++rank) {
      const ExchangePieces pieces = exchange_pieces(e.mesh, e.shape, e.from, e.to, rank);
      for (const Piece& piece : pieces.send) sent[{rank, piece.peer}] += to_string(piece.box);
      for (const Piece& piece : pieces.receive) received[{piece.peer, rank}] += to_string(piece.box);
      ASSERT_TRUE(std::ranges::is_sorted(pieces.send, {}, &Piece::peer));
    }
    ASSERT_EQ(sent, received);
  }
}

TEST(ExchangePieces, HoldersOfCopiesShareTheWork) {
  // Four copies of each half: each of the eight ranks serves one other, none serves all.
  const Mesh mesh{{2, 2, 2}};
  for (const Tiling& from : {Tiling{split(0), replicate(), replicate()}, Tiling{replicate(), replicate(), split(0)}})
    for (int rank = 0; rank < 8; ++rank)
      EXPECT_EQ(exchange_pieces(mesh, {8}, from, replicated(mesh), rank).send.size(), 2u); // itself and one other
}

TEST(Overlap, IsWhatTheBlocksShare) {
  Draw draw(9);
  for (int round = 0; round < 3000; ++round) {
    const Exchange e = draw_exchange(draw);
    std::int64_t shared = 0, held = 0;
    for (int rank = 0; rank < ranks(e.mesh); ++rank) {
      const Box a = block(e.from, e.shape, e.mesh, rank);
      shared += volume(intersect(a, block(e.to, e.shape, e.mesh, rank)));
      held += volume(a);
    }
    ASSERT_EQ(overlap(e.mesh, e.shape, e.from, e.to), shared);
    ASSERT_EQ(held_elements(e.mesh, e.shape, e.from), held);
  }
}

} // namespace
