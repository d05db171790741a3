#include "unit/plan/mini_buckets.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace soybean::test {
namespace {

std::size_t rows_of(const std::vector<std::size_t>& counts) {
  double rows = 1;
  for (std::size_t count : counts) rows *= static_cast<double>(count);
  return static_cast<std::size_t>(std::min(rows, 1e9));
}

/// Per value of a variable what all the factors tell of it, in numbers from 0 on, by first occurrence.
std::u16string joint_aspects(const std::vector<Factor>& factors, int variable, std::size_t values) {
  std::map<std::u16string, char16_t> numbers;
  std::u16string joint;
  for (std::size_t x = 0; x < values; ++x) {
    std::u16string all;
    for (const Factor& factor : factors)
      for (std::size_t i = 0; i < factor.variables.size(); ++i)
        if (factor.variables[i] == variable) all.push_back((*factor.aspects[i])[x]);
    joint.push_back(numbers.try_emplace(all, static_cast<char16_t>(numbers.size())).first->second);
  }
  return joint;
}

/// The first value with each aspect.
std::u16string representatives(const std::u16string& aspects) {
  std::u16string values;
  for (std::size_t x = 0; x < aspects.size(); ++x)
    if (aspects[x] == values.size()) values.push_back(static_cast<char16_t>(x));
  return values;
}

} // namespace

MiniBuckets::MiniBuckets(const Values& values, std::vector<TensorPrice>& prices, const std::vector<int>& order,
                         std::size_t most_rows)
    : values_(values), used_(order.size() + 1) {
  std::vector<std::size_t> place(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  const auto fixed_after = [&](const std::vector<int>& variables) {
    std::size_t steps = 0;
    for (int v : variables) steps = std::max(steps, place[v] + 1);
    return steps;
  };
  std::vector<std::vector<Factor>> buckets(order.size());
  for (TensorPrice& price : prices) {
    Factor factor{price.variables(), {}, [&price](const Assignment& a) { return price(a); }};
    for (std::size_t i = 0; i < factor.variables.size(); ++i) factor.aspects.push_back(&price.aspects(i));
    buckets[fixed_after(factor.variables) - 1].push_back(std::move(factor));
  }
  for (std::size_t step = order.size(); step-- > 0;)
    for (const std::vector<Factor>& group : groups_of(buckets[step], order[step], most_rows)) {
      const Bound& bound = bounds_.emplace_back(join(group, order[step]));
      fill(bounds_.back(), group, order[step]);
      const std::size_t from = fixed_after(bound.variables);
      for (std::size_t steps = from; steps <= step; ++steps) used_[steps].push_back(&bound);
      if (from == 0) continue;
      Factor factor{bound.variables, {}, [&bound](const Assignment& a) { return price(bound, a); }};
      for (const std::u16string& aspects : bound.aspects) factor.aspects.push_back(&aspects);
      buckets[from - 1].push_back(std::move(factor));
    }
}

Price MiniBuckets::rest(std::size_t steps, const Assignment& assignment) const {
  Price sum;
  for (const Bound* bound : used_[steps]) sum = sum + price(*bound, assignment);
  return sum;
}

/// The bound of the factors, without its rows.
MiniBuckets::Bound MiniBuckets::join(const std::vector<Factor>& factors, int without) const {
  Bound bound;
  for (const Factor& factor : factors)
    bound.variables.insert(bound.variables.end(), factor.variables.begin(), factor.variables.end());
  std::sort(bound.variables.begin(), bound.variables.end());
  bound.variables.erase(std::unique(bound.variables.begin(), bound.variables.end()), bound.variables.end());
  std::erase(bound.variables, without);
  for (int v : bound.variables) {
    bound.aspects.push_back(joint_aspects(factors, v, values_.of(v).size()));
    bound.counts.push_back(representatives(bound.aspects.back()).size());
  }
  return bound;
}

void MiniBuckets::fill(Bound& bound, const std::vector<Factor>& factors, int over) const {
  const std::u16string tried = representatives(joint_aspects(factors, over, values_.of(over).size()));
  std::vector<std::u16string> firsts;
  firsts.reserve(bound.aspects.size());
  for (const std::u16string& aspects : bound.aspects) firsts.push_back(representatives(aspects));
  Assignment assignment(values_.size(), 0);
  bound.rows.assign(rows_of(bound.counts), Price{ElementMoves::impossible, 0});
  for (std::size_t row = 0; row < bound.rows.size(); ++row) {
    std::size_t rest = row;
    for (std::size_t i = bound.variables.size(); i-- > 0; rest /= bound.counts[i])
      assignment[bound.variables[i]] = firsts[i][rest % bound.counts[i]];
    for (const char16_t x : tried) {
      assignment[over] = x;
      Price sum;
      for (const Factor& factor : factors)
        if (sum < bound.rows[row]) sum = sum + factor.price(assignment);
      bound.rows[row] = std::min(bound.rows[row], sum);
    }
  }
}

/// Factors that are joined, the widest ones first.
std::vector<std::vector<Factor>> MiniBuckets::groups_of(const std::vector<Factor>& bucket, int variable,
                                                        std::size_t most_rows) const {
  const auto rows = [&](const std::vector<Factor>& factors) { return rows_of(join(factors, variable).counts); };
  std::vector<std::pair<std::size_t, std::size_t>> widest; // rows and place
  widest.reserve(bucket.size());
  for (std::size_t i = 0; i < bucket.size(); ++i) widest.emplace_back(rows({bucket[i]}), i);
  std::sort(widest.begin(), widest.end(), std::greater<>());
  std::vector<std::vector<Factor>> groups;
  for (const auto& [alone, i] : widest) {
    if (alone > most_rows) continue;
    const auto fits = [&](std::vector<Factor> group) {
      group.push_back(bucket[i]);
      return rows(group) <= most_rows;
    };
    const auto group = std::find_if(groups.begin(), groups.end(), fits);
    (group == groups.end() ? groups.emplace_back() : *group).push_back(bucket[i]);
  }
  return groups;
}

Price MiniBuckets::price(const Bound& bound, const Assignment& assignment) {
  std::size_t row = 0;
  for (std::size_t i = 0; i < bound.variables.size(); ++i)
    row = row * bound.counts[i] + bound.aspects[i][assignment[bound.variables[i]]];
  return bound.rows[row];
}

} // namespace soybean::test
