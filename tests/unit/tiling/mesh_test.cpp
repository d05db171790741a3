#include "base/error.hpp"
#include "tiling/mesh.hpp"

#include <gtest/gtest.h>

namespace {

using namespace soybean;
using namespace soybean::tiling;

std::string error_of(const std::vector<std::int64_t>& cuts, int ranks) {
  try {
    make_mesh(cuts, ranks);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Mesh, CoordinatesAreMixedRadixFirstCutOutermost) {
  const Mesh mesh{{3, 2, 2}};
  EXPECT_EQ(ranks(mesh), 12);
  for (int rank = 0; rank < 12; ++rank)
    EXPECT_EQ((coordinate(mesh, rank, 0) * 2 + coordinate(mesh, rank, 1)) * 2 + coordinate(mesh, rank, 2), rank);
  EXPECT_EQ(coordinate(mesh, 11, 0), 2);
  EXPECT_EQ(coordinate(mesh, 7, 1), 1);
}

TEST(Mesh, GroupsDifferInOneCutOnly) {
  const Mesh mesh{{3, 2, 2}};
  EXPECT_EQ(group(mesh, 6, 0), (std::vector<int>{2, 6, 10}));
  EXPECT_EQ(group(mesh, 6, 1), (std::vector<int>{4, 6}));
  EXPECT_EQ(group(mesh, 6, 2), (std::vector<int>{6, 7}));
  EXPECT_EQ(group(mesh, 6, 1, 2), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(group(mesh, 6, 0, 2), (std::vector<int>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(group(mesh, 6, 0, 3).size(), 12u);
  EXPECT_EQ(parts(mesh, 1, 2), 4);
}

TEST(Mesh, NoCutsIsOneRank) {
  EXPECT_EQ(ranks(Mesh{}), 1);
  EXPECT_EQ(to_string(Mesh{}), "1");
  EXPECT_EQ(make_mesh(std::vector<int>{1}), Mesh{});
  EXPECT_EQ(make_mesh({}, 1), Mesh{});
}

TEST(Mesh, DefaultIsPrimesOfHostsThenPrimesOfRanksPerHost) {
  EXPECT_EQ(make_mesh(std::vector<int>{8}).cuts, (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(make_mesh(std::vector<int>{12}).cuts, (std::vector<int>{3, 2, 2}));
  EXPECT_EQ(make_mesh(std::vector<int>{6, 6}).cuts, (std::vector<int>{2, 3, 2}));
  EXPECT_EQ(make_mesh(std::vector<int>{2, 2, 2, 2, 2, 2}).cuts, (std::vector<int>{3, 2, 2}));
  EXPECT_EQ(make_mesh(std::vector<int>(10, 1)).cuts, (std::vector<int>{5, 2}));
  EXPECT_EQ(make_mesh(std::vector<int>{7}).cuts, (std::vector<int>{7}));
  EXPECT_EQ(make_mesh(std::vector<int>{16}).cuts, (std::vector<int>{2, 2, 2, 2}));
}

TEST(MakeMesh, MergesNeighboursBeyondFourCuts) {
  EXPECT_EQ(make_mesh(std::vector<int>{32}).cuts, (std::vector<int>{2, 2, 2, 4}));
  EXPECT_EQ(make_mesh(std::vector<int>{64}).cuts, (std::vector<int>{2, 2, 4, 4}));
  EXPECT_EQ(make_mesh(std::vector<int>{48}).cuts, (std::vector<int>{3, 2, 2, 4}));
  EXPECT_EQ(make_mesh(std::vector<int>(2, 16)).cuts, (std::vector<int>{2, 2, 2, 4})); // within hosts only
  EXPECT_EQ(make_mesh(std::vector<int>(128, 8)).cuts, (std::vector<int>{8, 16, 2, 4}));
}

TEST(Mesh, UnequalHostsTakeThePrimesOfAllRanks) {
  EXPECT_EQ(make_mesh(std::vector<int>{8, 4}).cuts, (std::vector<int>{3, 2, 2}));
  EXPECT_EQ(make_mesh(std::vector<int>{1, 4}).cuts, (std::vector<int>{5}));
}

TEST(Mesh, HostWithoutRanksIsABug) {
  EXPECT_THROW(make_mesh(std::vector<int>{}), Bug);
  EXPECT_THROW(make_mesh(std::vector<int>{2, 0}), Bug);
}

TEST(Mesh, UserMeshMustMultiplyToTheRanks) {
  EXPECT_EQ(make_mesh({2, 4}, 8).cuts, (std::vector<int>{2, 4}));
  EXPECT_EQ(error_of({2, 3}, 8), "parallel.mesh: product of the cuts, got [2, 3] expected 8, the number of ranks. "
                                 "change the cuts or the number of ranks");
  EXPECT_EQ(error_of({}, 2), "parallel.mesh: product of the cuts, got [] expected 2, the number of ranks. "
                             "change the cuts or the number of ranks");
  // Products that do not fit 64 bits are refused like any other.
  EXPECT_EQ(error_of({std::int64_t{1} << 62, 8}, 8),
            "parallel.mesh: product of the cuts, got [4611686018427387904, 8] expected 8, the number of ranks. change "
            "the cuts or the number of ranks");
}

TEST(Mesh, UserCutsHaveAtLeastTwoParts) {
  EXPECT_EQ(error_of({8, 1}, 8), "parallel.mesh: parts of a cut, got 1 in [8, 1] expected at least 2. leave out cuts "
                                 "of one part");
  EXPECT_EQ(error_of({-2, -4}, 8), "parallel.mesh: parts of a cut, got -2 in [-2, -4] expected at least 2. leave out "
                                   "cuts of one part");
}

TEST(Mesh, PrefixAndText) {
  const Mesh mesh{{3, 2, 2}};
  EXPECT_EQ(prefix(mesh, 2).cuts, (std::vector<int>{3, 2}));
  EXPECT_EQ(prefix(mesh, 0), Mesh{});
  EXPECT_EQ(to_string(mesh), "3x2x2");
}

} // namespace
