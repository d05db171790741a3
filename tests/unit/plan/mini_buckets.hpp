#pragma once
// What is still to be paid at least when variables are fixed in an order: mini-bucket elimination (Dechter and Rish,
// "Mini-buckets: a general scheme for bounded inference", J. ACM 2003, section 3). It makes brute force feasible.
#include "unit/plan/tensor_prices.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace soybean::test {

/// What tensors cost, or at least cost, by what some variables do.
struct Factor {
  std::vector<int> variables;
  std::vector<const std::u16string*> aspects; ///< per variable: numbers of its values, equal where the cost is the same
  std::function<Price(const Assignment&)> price;
};

class MiniBuckets {
public:
  /// `order`: of all variables. Bounds that would take more than `most_rows` rows are left apart; with 0 there are
  /// none.
  MiniBuckets(const Values& values, std::vector<TensorPrice>& prices, const std::vector<int>& order,
              std::size_t most_rows);

  /// Of all tensors that are not priced when the first `steps` variables of the order are fixed.
  Price rest(std::size_t steps, const Assignment& assignment) const;

private:
  /// The least that some factors come to, whatever one of their variables does.
  struct Bound {
    std::vector<int> variables; // the others
    std::vector<std::u16string> aspects;
    std::vector<std::size_t> counts; // of aspects
    std::vector<Price> rows;
  };

  Bound join(const std::vector<Factor>& factors, int without) const;
  void fill(Bound& bound, const std::vector<Factor>& factors, int over) const;
  std::vector<std::vector<Factor>> groups_of(const std::vector<Factor>& bucket, int variable,
                                             std::size_t most_rows) const;
  static Price price(const Bound& bound, const Assignment& assignment);

  const Values& values_;
  std::deque<Bound> bounds_;
  std::vector<std::vector<const Bound*>> used_; // per number of steps
};

} // namespace soybean::test
