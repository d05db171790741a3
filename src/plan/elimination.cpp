#include "plan/elimination.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>

namespace soybean::plan {
namespace {

std::size_t entries(const std::vector<int>& scope, const std::vector<int>& sizes) {
  std::size_t n = 1;
  for (int v : scope) n *= static_cast<std::size_t>(sizes[v]);
  return n;
}

/// The same function with `last` as its fastest variable: rows of sizes[last] values; `scope` loses it.
void move_last(Factor& factor, int last, const std::vector<int>& sizes) {
  const auto position = std::find(factor.scope.begin(), factor.scope.end(), last);
  const std::size_t inner = entries({position + 1, factor.scope.end()}, sizes);
  const auto count = static_cast<std::size_t>(sizes[last]);
  const std::size_t outer = factor.table.size() / (inner * count);
  factor.scope.erase(position);
  if (inner == 1) return;
  std::vector<Cost> table(factor.table.size());
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t x = 0; x < count; ++x)
      for (std::size_t i = 0; i < inner; ++i)
        table[(o * inner + i) * count + x] = factor.table[(o * count + x) * inner + i];
  factor.table = std::move(table);
}

/// Which value of an eliminated variable is best, given those of its neighbours.
struct Decision {
  int variable;
  std::vector<int> scope;
  std::vector<std::uint16_t> best;
};

/// Minimises the sum of factors (all with the variable last, its rows `count` long) over that variable. Rows are
/// summed level by level of the joint scope, so that the innermost loop adds only what changes there.
class Join {
public:
  Join(const std::vector<Factor>& factors, std::vector<int> scope, const std::vector<int>& sizes, int count)
      : count_(static_cast<std::size_t>(count)), depth_(scope.size()) {
    for (int v : scope) sizes_.push_back(static_cast<std::size_t>(sizes[v]));
    levels_.resize(depth_ + 1);
    for (const Factor& factor : factors) {
      Input input{factor.table.data(), std::vector<std::size_t>(depth_, 0)};
      std::size_t stride = count_, level = 0;
      for (std::size_t i = depth_; i-- > 0;) {
        if (std::find(factor.scope.begin(), factor.scope.end(), scope[i]) == factor.scope.end()) continue;
        input.strides[i] = stride;
        stride *= sizes_[i];
        level = std::max(level, i + 1);
      }
      levels_[level].push_back(inputs_.size());
      inputs_.push_back(std::move(input));
    }
    sums_.assign((depth_ + 1) * count_, 0);
    at_.assign(inputs_.size(), 0);
    result_.scope = std::move(scope);
  }

  Factor run(std::vector<std::uint16_t>& best) {
    std::size_t n = 1;
    for (std::size_t size : sizes_) n *= size;
    result_.table.reserve(n);
    best.reserve(n);
    best_ = &best;
    descend(0);
    return std::move(result_);
  }

private:
  struct Input {
    const Cost* table;
    std::vector<std::size_t> strides;
  };

  void descend(std::size_t level) {
    Cost* sum = sums_.data() + level * count_;
    if (level > 0) std::copy_n(sum - count_, count_, sum);
    for (std::size_t i : levels_[level]) {
      const Cost* row = inputs_[i].table + at_[i];
      for (std::size_t x = 0; x < count_; ++x) sum[x] += row[x];
    }
    if (level == depth_) {
      std::size_t least = 0;
      for (std::size_t x = 1; x < count_; ++x) least = sum[x] < sum[least] ? x : least;
      result_.table.push_back(std::min(sum[least], infinite_cost));
      best_->push_back(static_cast<std::uint16_t>(least));
      return;
    }
    for (std::size_t value = 0; value < sizes_[level]; ++value) {
      descend(level + 1);
      for (std::size_t i = 0; i < inputs_.size(); ++i) at_[i] += inputs_[i].strides[level];
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) at_[i] -= inputs_[i].strides[level] * sizes_[level];
  }

  std::size_t count_, depth_;
  std::vector<std::size_t> sizes_;
  std::vector<Input> inputs_;
  std::vector<std::vector<std::size_t>> levels_; // inputs whose last variable is the one above
  std::vector<Cost> sums_;                       // one row per level
  std::vector<std::size_t> at_;                  // per input, where its current row begins
  Factor result_;
  std::vector<std::uint16_t>* best_ = nullptr;
};

} // namespace

Order elimination_order(const std::vector<int>& sizes, const std::vector<std::vector<int>>& scopes) {
  std::vector<std::set<int>> near(sizes.size());
  for (const std::vector<int>& scope : scopes)
    for (int a : scope)
      for (int b : scope)
        if (a != b) near[a].insert(b);
  std::vector<char> done(sizes.size(), 0);
  Order order;
  for (std::size_t step = 0; step < sizes.size(); ++step) {
    int best = -1;
    double least = 0;
    for (std::size_t v = 0; v < sizes.size(); ++v) {
      if (done[v]) continue;
      double table = 1;
      for (int n : near[v]) table *= sizes[n];
      if (best < 0 || table < least) {
        best = static_cast<int>(v);
        least = table;
      }
    }
    done[best] = 1;
    order.variables.push_back(best);
    order.largest_table = std::max(order.largest_table, least);
    order.work += least * sizes[best];
    for (int a : near[best]) {
      near[a].erase(best);
      for (int b : near[best])
        if (a != b) near[a].insert(b);
    }
  }
  return order;
}

Minimum eliminate(const std::vector<int>& sizes, std::vector<Factor> factors, const Order& order) {
  Minimum minimum;
  Cost constant = 0;
  std::vector<Decision> decisions;
  for (int v : order.variables) {
    const auto speaks = [v](const Factor& f) { return std::find(f.scope.begin(), f.scope.end(), v) != f.scope.end(); };
    const auto bucket_begin = std::stable_partition(factors.begin(), factors.end(), std::not_fn(speaks));
    std::vector<Factor> bucket(std::make_move_iterator(bucket_begin), std::make_move_iterator(factors.end()));
    factors.erase(bucket_begin, factors.end());
    std::set<int> joint;
    for (Factor& factor : bucket) {
      move_last(factor, v, sizes);
      joint.insert(factor.scope.begin(), factor.scope.end());
    }
    Decision decision{v, {joint.begin(), joint.end()}, {}};
    factors.push_back(Join(bucket, decision.scope, sizes, sizes[v]).run(decision.best));
    decisions.push_back(std::move(decision));
  }
  for (const Factor& factor : factors) constant = std::min(infinite_cost, constant + factor.table[0]);
  minimum.cost = constant;
  minimum.assignment.assign(sizes.size(), 0);
  for (auto d = decisions.rbegin(); d != decisions.rend(); ++d) {
    std::size_t at = 0;
    for (int u : d->scope)
      at = at * static_cast<std::size_t>(sizes[u]) + static_cast<std::size_t>(minimum.assignment[u]);
    minimum.assignment[d->variable] = d->best[at];
  }
  return minimum;
}

} // namespace soybean::plan
