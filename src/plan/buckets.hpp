#pragma once
// What elimination and the choice of its order have in common: factors sorted into buckets, told apart by numbers of
// their tables, so that equal buckets are recognised. Included inside src/plan's elimination only.
#include "plan/elimination.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace soybean::plan {

/// Sums of both kinds of costs: all of them, or prices alone.
template<class C>
constexpr C infinite = infinite_cost;
template<>
constexpr std::int64_t infinite<std::int64_t> = infinite_price;

template<class C>
using Table = std::shared_ptr<const std::vector<C>>;

/// Numbers tables so that equal ones have equal numbers, and keeps one of each.
template<class C>
class Tables {
public:
  struct Entry {
    Table<C> table;
    int number;
  };

  Entry add(std::vector<C> table) {
    std::vector<Entry>& alike = by_hash_[hash(table)];
    for (const Entry& entry : alike)
      if (*entry.table == table) return entry;
    alike.push_back({std::make_shared<const std::vector<C>>(std::move(table)), count_++});
    return alike.back();
  }

  /// The same for a table that may have been seen itself.
  Entry add(const Table<C>& table) {
    const auto seen = seen_.find(table.get());
    if (seen != seen_.end()) return seen->second;
    return seen_[table.get()] = add(*table);
  }

private:
  static std::uint64_t hash(const std::vector<C>& table) {
    std::uint64_t h = table.size();
    for (C cost : table) {
      h = (h ^ static_cast<std::uint64_t>(cost) ^ (h >> 29)) * 0x9E3779B97F4A7C15U;
      if constexpr (sizeof(C) > sizeof h) h = (h ^ static_cast<std::uint64_t>(cost >> 64)) * 0xBF58476D1CE4E5B9U;
    }
    return h;
  }

  std::unordered_map<std::uint64_t, std::vector<Entry>> by_hash_; // only looked up in
  std::unordered_map<const void*, Entry> seen_;
  int count_ = 0;
};

/// When each variable is eliminated. Scopes and tables here run from the last to the first, so that the next variable
/// to go is the fastest.
inline std::vector<std::size_t> positions(const Order& order) {
  std::vector<std::size_t> position(order.variables.size());
  for (std::size_t i = 0; i < position.size(); ++i) position[order.variables[i]] = i;
  return position;
}

/// A factor in a bucket; the bucket's variable is its fastest and left out of `scope`.
template<class C>
struct Input {
  std::vector<int> scope;
  typename Tables<C>::Entry entry;
  int source; ///< the bucket it came from, -1: given
};

/// All factors that speak of a variable when it is its turn, and what their least sum over it depends on.
template<class C>
struct Bucket {
  int variable = -1;
  std::vector<int> scope;
  std::vector<Input<C>> inputs;
};

/// Collects the scope of a bucket from its inputs, and sorts both so that equal buckets look equal.
template<class C>
void settle(Bucket<C>& bucket, const std::vector<std::size_t>& position) {
  const auto later = [&](int a, int b) { return position[a] > position[b]; };
  for (const auto& input : bucket.inputs)
    for (int v : input.scope)
      if (std::find(bucket.scope.begin(), bucket.scope.end(), v) == bucket.scope.end()) bucket.scope.push_back(v);
  std::sort(bucket.scope.begin(), bucket.scope.end(), later);
  std::stable_sort(bucket.inputs.begin(), bucket.inputs.end(), [&](const auto& a, const auto& b) {
    return a.entry.number != b.entry.number
               ? a.entry.number < b.entry.number
               : std::lexicographical_compare(a.scope.begin(), a.scope.end(), b.scope.begin(), b.scope.end(), later);
  });
}

/// Equal for buckets that differ in the names of their variables only.
template<class C>
std::vector<int> signature(const Bucket<C>& bucket, const std::vector<int>& sizes) {
  std::vector<int> key = {sizes[bucket.variable], static_cast<int>(bucket.scope.size())};
  for (int v : bucket.scope) key.push_back(sizes[v]);
  for (const auto& input : bucket.inputs) {
    key.push_back(input.entry.number);
    for (int v : input.scope)
      key.push_back(static_cast<int>(std::find(bucket.scope.begin(), bucket.scope.end(), v) - bucket.scope.begin()));
    key.push_back(-1);
  }
  return key;
}

} // namespace soybean::plan
