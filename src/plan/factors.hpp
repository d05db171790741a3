#pragma once
// The terms of a problem as tables for elimination. A term of many nodes would take a table over all of them; where the
// ways in which its tensor can come about (the stored tiling and the copies made) are few, they become the values of an
// extra variable, and the term tables of pairs. Hides those variables. Called inside src/plan only.
#include "plan/elimination.hpp"
#include "plan/problem.hpp"
#include "plan/relaxation.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace soybean::plan {

class Factors {
public:
  /// For values restricted to those listed. `outcomes`: those wanted with these. Tables of terms with up to
  /// `whole_entries` entries are not split.
  Factors(const Problem& problem, std::vector<std::vector<int>> keep, Outcomes& outcomes, double whole_entries);

  /// What eliminating everything would take, making the tables included.
  Order order() const;
  std::vector<Factor> tables() const;
  const std::vector<std::vector<int>>& values() const { return keep_; }
  /// Per variable of the problem, then per extra one.
  const std::vector<int>& sizes() const { return sizes_; }

private:
  static constexpr int whole = -1, alone = -2, computing = -3;
  struct Piece {
    std::vector<int> scope;
    std::size_t term; ///< or, where `computing`, the variable
    int part;         ///< the link that is paired with the extra variable; or `whole` term; or the extra variable
                      ///< `alone`; or `computing` of a variable
    int extra;        ///< -1: none
    int alike;        ///< equal for pieces of equal tables
    double work;      ///< of making the table
  };
  void add(std::size_t term, int kind, Outcomes& outcomes, double whole_entries);
  void add_computing(std::size_t variable);
  void split(std::size_t term, int kind, const std::vector<Outcome>& outcomes);
  std::vector<Cost> table_of(const Piece& piece) const;
  std::vector<Cost> pair_table(const Piece& piece) const;

  const Problem& problem_;
  std::vector<std::vector<int>> keep_;
  std::vector<int> sizes_;
  std::vector<std::vector<Outcome>> outcomes_; ///< per extra variable
  std::vector<Piece> pieces_;
  std::map<std::vector<std::int64_t>, int> alike_;
};

} // namespace soybean::plan
