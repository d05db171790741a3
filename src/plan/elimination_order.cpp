#include "plan/buckets.hpp"
#include "plan/elimination.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace soybean::plan {
namespace {

/// What an order takes first, whatever comes after.
enum class First : std::uint8_t { smallest_table, least_work, least_growth };

/// Goes on with the variable that looks best.
class Ordering {
public:
  Ordering(First first, const std::vector<int>& sizes, const std::vector<std::vector<int>>& scopes)
      : first_(first), sizes_(sizes), near_(sizes.size()), table_(sizes.size(), 1), done_(sizes.size(), 0) {
    for (const std::vector<int>& scope : scopes)
      for (int a : scope)
        for (int b : scope)
          if (a != b) near_[a].insert(b);
    for (std::size_t v = 0; v < sizes.size(); ++v) measure(static_cast<int>(v));
  }

  /// The next variable; the size of the table it leaves is in `table`.
  int next(double& table) {
    int best = -1;
    for (std::size_t v = 0; v < sizes_.size(); ++v)
      if (!done_[v] && (best < 0 || looks_[v] < looks_[best])) best = static_cast<int>(v);
    table = table_[best];
    done_[best] = 1;
    for (int a : near_[best]) {
      near_[a].erase(best);
      for (int b : near_[best])
        if (a != b) near_[a].insert(b);
    }
    for (int a : near_[best]) measure(a);
    return best;
  }

private:
  void measure(int v) {
    table_[v] = 1;
    double largest = 1;
    for (int n : near_[v]) {
      table_[v] *= sizes_[n];
      largest = std::max(largest, static_cast<double>(sizes_[n]));
    }
    looks_[v] = table_[v];
    if (first_ == First::least_work) looks_[v] *= sizes_[v];
    if (first_ == First::least_growth) looks_[v] /= std::max(largest, 1.0) * sizes_[v];
  }

  First first_;
  const std::vector<int>& sizes_;
  std::vector<std::set<int>> near_;
  std::vector<double> table_; // entries left by eliminating the variable next
  std::vector<double> looks_ = std::vector<double>(sizes_.size(), 0);
  std::vector<char> done_;
};

/// Adds up what an order takes as if it was carried out, tables being numbers that say what they are made of.
double distinct_work(const std::vector<int>& sizes, const std::vector<std::vector<int>>& scopes,
                     const std::vector<int>& alike, const Order& order) {
  const std::vector<std::size_t> position = positions(order);
  const auto later = [&](int a, int b) { return position[a] > position[b]; };
  std::map<std::vector<int>, int> numbers; // of what tables are made of
  const auto number = [&](std::vector<int> key) {
    return numbers.try_emplace(std::move(key), static_cast<int>(numbers.size())).first->second;
  };
  std::vector<std::vector<Input<Cost>>> waiting(sizes.size()); // per variable, inputs it is the next of
  const auto wait = [&](std::vector<int> scope, int made_of) {
    if (scope.empty()) return;
    const int next = scope.back();
    scope.pop_back();
    waiting[next].push_back({std::move(scope), {nullptr, made_of}, -1});
  };
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    std::vector<int> sorted = scopes[i], key = {-1, alike[i]};
    std::sort(sorted.begin(), sorted.end(), later);
    for (int v : sorted)
      key.push_back(static_cast<int>(std::find(scopes[i].begin(), scopes[i].end(), v) - scopes[i].begin()));
    wait(sorted, number(std::move(key)));
  }
  double work = 0;
  for (int v : order.variables) {
    Bucket<Cost> bucket{v, {}, std::move(waiting[v])};
    settle(bucket, position);
    const std::size_t before = numbers.size();
    std::vector<int> key = signature(bucket, sizes);
    const int made_of = number(std::move(key));
    double combinations = sizes[v];
    for (int u : bucket.scope) combinations *= sizes[u];
    if (numbers.size() > before) work += combinations;
    wait(bucket.scope, made_of);
  }
  return work;
}

} // namespace

Order elimination_order(const std::vector<int>& sizes, const std::vector<std::vector<int>>& scopes,
                        const std::vector<int>& alike) {
  Order best;
  for (const First first : {First::smallest_table, First::least_work, First::least_growth}) {
    Order order;
    Ordering ordering(first, sizes, scopes);
    for (std::size_t step = 0; step < sizes.size(); ++step) {
      double table = 0;
      order.variables.push_back(ordering.next(table));
      order.largest_table = std::max(order.largest_table, table);
    }
    order.work = distinct_work(sizes, scopes, alike, order);
    if (best.variables.empty() || order.work < best.work) best = std::move(order);
  }
  return best;
}

} // namespace soybean::plan
