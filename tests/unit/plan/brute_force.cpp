#include "unit/plan/brute_force.hpp"

#include "unit/plan/mini_buckets.hpp"
#include "unit/plan/tensor_prices.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace soybean::test {
namespace {

using tiling::Mesh;

/// The cheapest way to come to each state: what the variables do that tensors not yet priced depend on.
using States = std::unordered_map<std::u16string, Price>;

class Search {
public:
  Search(const graph::Graph& graph, const Mesh& mesh, const Price& limit, const Scope& scope)
      : moves_(moves_of(graph, mesh)), values_(graph, mesh, scope, moves_), limit_(limit), fixed_(values_.size()) {
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
      const graph::Tensor& tensor = graph.tensors[t];
      if (tensor.previous != graph::none || tensor.role == graph::Role::metric) continue;
      TensorPrice price(values_, static_cast<graph::TensorId>(t));
      if (!price.variables().empty()) prices_.push_back(std::move(price));
    }
  }

  Cheapest run(std::size_t bound_rows) {
    const std::vector<int> order = best_order();
    const MiniBuckets bounds(values_, prices_, order, bound_rows);
    States states{{{}, {0, 0}}};
    std::vector<int> open;
    for (std::size_t step = 0; step < order.size(); ++step) {
      const auto rest = [&](const Assignment& assignment) { return bounds.rest(step + 1, assignment); };
      states = advance(states, open, order[step], rest);
    }
    return states.empty() ? Cheapest{} : Cheapest{true, states.begin()->second};
  }

private:
  static std::vector<ElementMoves> moves_of(const graph::Graph& graph, const Mesh& mesh) {
    std::vector<ElementMoves> moves;
    moves.reserve(graph.tensors.size());
    for (const graph::Tensor& tensor : graph.tensors) moves.emplace_back(mesh, tensor);
    return moves;
  }

  bool all_fixed(const TensorPrice& price, const std::vector<char>& fixed) const {
    return std::all_of(price.variables().begin(), price.variables().end(), [&](int v) { return fixed[v]; });
  }

  /// Variables that are fixed while a tensor of theirs is not priced, and how many things each may do that are not the
  /// same to those tensors, at most.
  std::map<int, std::size_t> open_variables(const std::vector<char>& fixed) const {
    std::map<int, std::size_t> open;
    for (const TensorPrice& price : prices_) {
      if (all_fixed(price, fixed)) continue;
      for (std::size_t i = 0; i < price.variables().size(); ++i) {
        const int v = price.variables()[i];
        if (!fixed[v]) continue;
        std::size_t& count = open.try_emplace(v, 1).first->second;
        count = std::min(count * price.aspect_count(i), values_.of(v).size());
      }
    }
    return open;
  }

  /// Logarithm of the number of states there may be.
  double breadth(const std::vector<char>& fixed) const {
    double sum = 0;
    for (const auto& [variable, count] : open_variables(fixed)) sum += std::log(static_cast<double>(count));
    return sum;
  }

  struct Order {
    std::vector<int> variables;
    double widest = 0;
  };

  /// From a variable on, always the one that leaves the fewest states.
  Order order_from(int first) const {
    Order order;
    std::vector<char> fixed(values_.size());
    for (int next = first; next >= 0;) {
      order.variables.push_back(next);
      fixed[next] = 1;
      order.widest = std::max(order.widest, breadth(fixed));
      next = -1;
      double fewest = 0;
      for (int v = 0; v < static_cast<int>(fixed.size()); ++v) {
        if (fixed[v]) continue;
        fixed[v] = 1;
        const double with = breadth(fixed);
        fixed[v] = 0;
        if (next < 0 || with < fewest) next = v, fewest = with;
      }
    }
    return order;
  }

  std::vector<int> best_order() const {
    Order best = order_from(0);
    for (int first = 1; first < static_cast<int>(values_.size()); ++first)
      if (Order other = order_from(first); other.widest < best.widest) best = std::move(other);
    return best.variables;
  }

  /// Per value of the variable the first one that is the same to all tensors that are not priced.
  std::u16string same_from_now_on(int variable) const {
    std::map<std::u16string, char16_t> first;
    std::u16string same;
    for (std::size_t x = 0; x < values_.of(variable).size(); ++x) {
      std::u16string aspects;
      for (const TensorPrice& price : prices_)
        if (price.of(variable) && !all_fixed(price, fixed_)) aspects.push_back(price.aspects_of(variable)[x]);
      same.push_back(first.try_emplace(aspects, static_cast<char16_t>(x)).first->second);
    }
    return same;
  }

  /// Fixes one more variable. `rest` is what is to be paid later, at least.
  template<class Rest>
  States advance(const States& before, std::vector<int>& open, int variable, const Rest& rest) {
    fixed_[variable] = 1;
    std::vector<TensorPrice*> priced; // from now on
    for (TensorPrice& price : prices_)
      if (price.of(variable) && all_fixed(price, fixed_)) priced.push_back(&price);
    std::vector<int> left; // those open now
    std::vector<std::u16string> same;
    for (const auto& [v, count] : open_variables(fixed_)) {
      left.push_back(v);
      same.push_back(same_from_now_on(v));
    }
    const std::vector<std::int64_t> computing = values_.computing(variable);
    States after;
    Assignment assignment(values_.size(), 0);
    std::u16string state(left.size(), 0);
    for (const auto& [done, so_far] : before) {
      for (std::size_t i = 0; i < open.size(); ++i) assignment[open[i]] = done[i];
      for (std::size_t x = 0; x < values_.of(variable).size(); ++x) {
        assignment[variable] = static_cast<char16_t>(x);
        Price price = so_far + Price{computing[x], 0};
        for (TensorPrice* of_tensor : priced)
          if (price <= limit_) price = price + (*of_tensor)(assignment);
        if (price > limit_ || price + rest(assignment) > limit_) continue;
        for (std::size_t i = 0; i < left.size(); ++i) state[i] = same[i][assignment[left[i]]];
        const auto [known, is_new] = after.try_emplace(state, price);
        if (!is_new) known->second = std::min(known->second, price);
      }
    }
    open = left;
    return after;
  }

  std::vector<ElementMoves> moves_; // per tensor
  Values values_;
  Price limit_;
  std::vector<char> fixed_; // per variable
  std::vector<TensorPrice> prices_;
};

} // namespace

Cheapest brute_force(const graph::Graph& graph, const Mesh& mesh, const Price& limit, const Scope& scope) {
  return Search(graph, mesh, limit, scope).run(scope.bound_rows);
}

} // namespace soybean::test
