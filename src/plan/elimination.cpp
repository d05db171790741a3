#include "plan/elimination.hpp"

#include "plan/buckets.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>

namespace soybean::plan {
namespace {

/// The table of a factor whose scope has been sorted from `scope` to `sorted`.
template<class C>
std::vector<C> reordered(const std::vector<C>& table, const std::vector<int>& scope, const std::vector<int>& sorted,
                         const std::vector<int>& sizes) {
  std::vector<std::size_t> stride(scope.size());
  std::size_t n = 1;
  for (std::size_t i = sorted.size(); i-- > 0;) {
    stride[std::find(scope.begin(), scope.end(), sorted[i]) - scope.begin()] = n;
    n *= static_cast<std::size_t>(sizes[sorted[i]]);
  }
  std::vector<C> result(table.size());
  std::vector<std::size_t> at(scope.size(), 0);
  std::size_t to = 0;
  for (const C& cost : table) {
    result[to] = cost;
    for (std::size_t i = scope.size(); i-- > 0;) {
      to += stride[i];
      if (++at[i] < static_cast<std::size_t>(sizes[scope[i]])) break;
      to -= stride[i] * at[i];
      at[i] = 0;
    }
  }
  return result;
}

/// A factor as it is given.
template<class C>
struct Given {
  std::vector<int> scope;
  Table<C> table;
};

/// Goes through all combinations of a bucket's scope, the innermost fastest, with a row of sums over the values of its
/// variable for each. Rows are summed level by level, so that the innermost loop adds only what changes there.
template<class C>
class Rows {
public:
  Rows(const Bucket<C>& bucket, const std::vector<int>& sizes)
      : count_(static_cast<std::size_t>(sizes[bucket.variable])), depth_(bucket.scope.size()) {
    for (int v : bucket.scope) sizes_.push_back(static_cast<std::size_t>(sizes[v]));
    levels_.resize(depth_ + 1);
    for (const auto& input : bucket.inputs) {
      Strided strided{input.entry.table->data(), std::vector<std::size_t>(depth_, 0)};
      std::size_t stride = count_, level = 0;
      for (std::size_t i = depth_; i-- > 0;) {
        if (std::find(input.scope.begin(), input.scope.end(), bucket.scope[i]) == input.scope.end()) continue;
        strided.strides[i] = stride;
        stride *= sizes_[i];
        level = std::max(level, i + 1);
      }
      levels_[level].push_back(inputs_.size());
      inputs_.push_back(std::move(strided));
    }
    sums_.assign((depth_ + (depth_ > 0 ? sizes_.back() : 1)) * count_, 0);
    at_.assign(inputs_.size(), 0);
  }

  std::size_t combinations() const {
    std::size_t n = 1;
    for (std::size_t size : sizes_) n *= size;
    return n;
  }

  /// Calls f(row of sums) for each combination.
  template<class F>
  void each(const F& f) {
    descend(0, f, [&](const C* sum) { finish(sum, f); });
  }
  /// For those of which wanted(index of the combination) holds. `combination()` then says which it is, `at(input)`
  /// where that input's row begins.
  template<class W, class F>
  void each(const W& wanted, const F& f) {
    combination_ = 0;
    descend(0, f, [&](const C* sum) { finish(sum, wanted, f); });
  }
  std::size_t combination() const { return combination_; }
  std::size_t at(std::size_t input) const { return at_[input]; }

private:
  struct Strided {
    const C* table;
    std::vector<std::size_t> strides;
  };

  template<class F, class L>
  void descend(std::size_t level, const F& f, const L& innermost) {
    C* sum = sums_.data() + level * count_;
    add_up(levels_[level], level > 0 ? sum - count_ : sum, sum);
    if (level == depth_) return f(sum);
    if (level + 1 == depth_) return innermost(sum);
    for (std::size_t value = 0; value < sizes_[level]; ++value) {
      descend(level + 1, f, innermost);
      for (std::size_t i = 0; i < inputs_.size(); ++i) at_[i] += inputs_[i].strides[level];
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) at_[i] -= inputs_[i].strides[level] * sizes_[level];
  }

  /// The innermost variable: the rows of its values are next to each other in all tables that have it.
  template<class F>
  void finish(const C* sum, const F& f) {
    const std::size_t values = sizes_.back();
    C* rows = sums_.data() + depth_ * count_;
    const std::vector<std::size_t>& last = levels_[depth_];
    const Strided& first = inputs_[last[0]]; // every variable of the scope is one of some input's
    for (std::size_t value = 0; value < values; ++value)
      add_up(sum, first.table + at_[last[0]] + value * count_, rows + value * count_, count_);
    for (std::size_t i = 1; i < last.size(); ++i)
      add_up(rows, inputs_[last[i]].table + at_[last[i]], rows, values * count_);
    for (std::size_t value = 0; value < values; ++value) f(rows + value * count_);
  }

  /// Where few are wanted.
  template<class W, class F>
  void finish(const C* sum, const W& wanted, const F& f) {
    const std::vector<std::size_t>& last = levels_[depth_];
    C* row = sums_.data() + depth_ * count_;
    for (std::size_t value = 0; value < sizes_.back(); ++value, ++combination_) {
      if (wanted(combination_)) {
        add_up(last, sum, row);
        f(row);
      }
      for (std::size_t i : last) at_[i] += count_;
    }
    for (std::size_t i : last) at_[i] -= sizes_.back() * count_;
  }

  static void add_up(const C* a, const C* b, C* sum, std::size_t entries) {
    for (std::size_t entry = 0; entry < entries; ++entry) sum[entry] = a[entry] + b[entry];
  }
  /// The rows at hand of inputs to `from`.
  void add_up(const std::vector<std::size_t>& inputs, const C* from, C* sum) const {
    for (std::size_t i : inputs) {
      add_up(from, inputs_[i].table + at_[i], sum, count_);
      from = sum;
    }
    if (from != sum) std::copy_n(from, count_, sum);
  }

  std::size_t count_, depth_;
  std::vector<std::size_t> sizes_;
  std::vector<Strided> inputs_;
  std::vector<std::vector<std::size_t>> levels_; // inputs whose last variable is the one above
  std::vector<C> sums_;                          // one row per level, at the innermost one per value
  std::vector<std::size_t> at_;                  // per input, where its current row begins
  std::size_t combination_ = 0;
};

/// Takes the least entry, unless there is no finite one, off all. Along a chain of equal blocks tables become equal
/// that way.
template<class C>
C take_off_least(std::vector<C>& table) {
  const C least = *std::min_element(table.begin(), table.end());
  if (least >= infinite<C>) return 0;
  for (C& cost : table) cost = cost < infinite<C> ? cost - least : infinite<C>;
  return least;
}

/// The least sums over a bucket's variable, less `constant`, and which values give them.
template<class C>
struct Message {
  typename Tables<C>::Entry entry;
  C constant = 0;
  std::shared_ptr<const std::vector<std::uint16_t>> best;
};

/// The factors sorted into buckets as variables are eliminated. What a bucket sends on is its message.
template<class C>
class BucketTree {
public:
  /// `decides`: messages say which values give the least sums, too.
  BucketTree(const std::vector<int>& sizes, const std::vector<Given<C>>& factors, const Order& order, bool decides)
      : sizes_(sizes), order_(order), decides_(decides), position_(positions(order)) {
    std::map<std::pair<const void*, std::vector<std::size_t>>, typename Tables<C>::Entry>
        known; // by table and order of its scope
    for (const Given<C>& factor : factors) {
      std::vector<int> sorted = factor.scope;
      std::sort(sorted.begin(), sorted.end(), [&](int a, int b) { return position_[a] > position_[b]; });
      if (sorted == factor.scope) {
        waiting_.push_back({std::move(sorted), tables_.add(factor.table), -1});
        continue;
      }
      std::vector<std::size_t> places;
      places.reserve(sorted.size());
      for (int v : sorted)
        places.push_back(
            static_cast<std::size_t>(std::find(factor.scope.begin(), factor.scope.end(), v) - factor.scope.begin()));
      const auto key = std::make_pair(static_cast<const void*>(factor.table.get()), places);
      auto found = known.find(key);
      if (found == known.end())
        found = known.emplace(key, tables_.add(reordered(*factor.table, factor.scope, sorted, sizes_))).first;
      waiting_.push_back({std::move(sorted), found->second, -1});
    }
  }

  /// The next variable's bucket; its message still has to be sent.
  Bucket<C> next() {
    Bucket<C> bucket{order_.variables[made_++], {}, {}};
    const auto speaks = [&](const Input<C>& w) { return !w.scope.empty() && w.scope.back() == bucket.variable; };
    const auto mine = std::stable_partition(waiting_.begin(), waiting_.end(), std::not_fn(speaks));
    for (auto w = mine; w != waiting_.end(); ++w) {
      w->scope.pop_back();
      bucket.inputs.push_back(std::move(*w));
    }
    waiting_.erase(mine, waiting_.end());
    settle(bucket, position_);
    return bucket;
  }

  /// Sends the least sums over the variable of the bucket made last.
  const Message<C>& send(const Bucket<C>& bucket) {
    auto [sent, fresh] = sent_.try_emplace(signature(bucket, sizes_));
    if (fresh) sent->second = sum_up(bucket);
    const Message<C>& message = sent->second;
    constant_ = std::min(infinite<C>, constant_ + message.constant);
    waiting_.push_back({bucket.scope, message.entry, static_cast<int>(made_) - 1});
    return message;
  }

  /// What is left when all variables are gone: the minimum, without the constants taken off messages.
  C rest() const {
    C sum = 0;
    for (const Input<C>& w : waiting_) sum = std::min(infinite<C>, sum + (*w.entry.table)[0]);
    return sum;
  }
  C constant() const { return constant_; }
  Tables<C>& tables() { return tables_; }

private:
  Message<C> sum_up(const Bucket<C>& bucket) {
    const auto count = static_cast<std::size_t>(sizes_[bucket.variable]);
    Rows<C> rows(bucket, sizes_);
    std::vector<C> table;
    std::vector<std::uint16_t> best;
    table.reserve(rows.combinations());
    if (decides_) {
      best.reserve(rows.combinations());
      rows.each([&](const C* sum) {
        std::size_t least = 0;
        for (std::size_t x = 1; x < count; ++x) least = sum[x] < sum[least] ? x : least;
        table.push_back(std::min(sum[least], infinite<C>));
        best.push_back(static_cast<std::uint16_t>(least));
      });
    } else {
      rows.each([&](const C* sum) {
        C least = infinite<C>;
        for (std::size_t x = 0; x < count; ++x) least = sum[x] < least ? sum[x] : least;
        table.push_back(least);
      });
    }
    Message<C> message;
    message.constant = take_off_least(table);
    message.entry = tables_.add(std::move(table));
    message.best = std::make_shared<const std::vector<std::uint16_t>>(std::move(best));
    return message;
  }

  const std::vector<int>& sizes_;
  const Order& order_;
  bool decides_;
  std::vector<std::size_t> position_;
  std::vector<Input<C>> waiting_;
  std::size_t made_ = 0;
  C constant_ = 0;
  Tables<C> tables_;
  std::map<std::vector<int>, Message<C>> sent_; // by signature
};

using Price = std::int64_t;

/// What a bucket's parts cost beside one of them: per value of its variable, and for each of the messages that came in,
/// per entry of that; each less a constant.
struct Outside {
  std::vector<Price> least;
  std::vector<Tables<Price>::Entry> tables; ///< in the order of inputs, of messages only
  std::vector<Price> constants;
};

/// What the parts of a sum that are not below a bucket add to its message, and what both may be together. More is as
/// good as infinite.
struct Rest {
  const std::vector<Price>& beyond;
  const std::vector<Price>& message;
  Price most;
};

Outside pass_back(const Bucket<Price>& bucket, const Rest& rest, const std::vector<int>& sizes, Tables<Price>& tables) {
  const auto count = static_cast<std::size_t>(sizes[bucket.variable]);
  struct Part {
    std::size_t input;
    std::vector<Price> own, others; // infinite entries of `own` are 0: `others` is infinite there anyway
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < bucket.inputs.size(); ++i) {
    if (bucket.inputs[i].source < 0) continue;
    Part& part = parts.emplace_back(Part{i, *bucket.inputs[i].entry.table, {}});
    part.others.assign(part.own.size(), infinite_price);
    std::replace(part.own.begin(), part.own.end(), infinite_price, Price{0});
  }
  Outside result{std::vector<Price>(count, infinite_price), {}, {}};
  std::vector<Price> all(count);
  Rows<Price> rows(bucket, sizes);
  const auto wanted = [&](std::size_t c) { return rest.beyond[c] + rest.message[c] <= rest.most; };
  rows.each(wanted, [&](const Price* sum) {
    const Price more = rest.beyond[rows.combination()];
    for (std::size_t x = 0; x < count; ++x) {
      all[x] = sum[x] + more;
      result.least[x] = std::min(result.least[x], all[x]);
    }
    for (Part& part : parts) {
      const std::size_t at = rows.at(part.input);
      const Price* own = part.own.data() + at;
      Price* others = part.others.data() + at;
      for (std::size_t x = 0; x < count; ++x) others[x] = std::min(others[x], all[x] - own[x]);
    }
  });
  for (Part& part : parts) {
    result.constants.push_back(take_off_least(part.others));
    result.tables.push_back(tables.add(std::move(part.others)));
  }
  return result;
}

/// What factors say of prices.
std::vector<Given<Price>> in_prices(const std::vector<Factor>& factors) {
  std::map<const void*, Table<Price>> made;
  std::vector<Given<Price>> given;
  for (const Factor& factor : factors) {
    Table<Price>& table = made[factor.table.get()];
    if (!table) {
      std::vector<Price> prices;
      prices.reserve(factor.table->size());
      for (Cost cost : *factor.table) prices.push_back(cost >= infinite_cost ? infinite_price : price_of(cost));
      table = std::make_shared<const std::vector<Price>>(std::move(prices));
    }
    given.push_back({factor.scope, table});
  }
  return given;
}

} // namespace

Minimum eliminate(const std::vector<int>& sizes, const std::vector<Factor>& factors, const Order& order) {
  struct Decision { // which value of an eliminated variable is best, given those of its neighbours
    int variable;
    std::vector<int> scope;
    std::shared_ptr<const std::vector<std::uint16_t>> best;
  };
  std::vector<Decision> decisions;
  std::vector<Given<Cost>> given;
  given.reserve(factors.size());
  for (const Factor& factor : factors) given.push_back({factor.scope, factor.table});
  BucketTree<Cost> tree(sizes, given, order, true);
  for (std::size_t i = 0; i < order.variables.size(); ++i) {
    Bucket<Cost> bucket = tree.next();
    const Message<Cost>& message = tree.send(bucket);
    decisions.push_back({bucket.variable, std::move(bucket.scope), message.best});
  }
  Minimum minimum;
  minimum.cost = std::min(infinite_cost, tree.rest() + tree.constant());
  minimum.assignment.assign(sizes.size(), 0);
  for (auto d = decisions.rbegin(); d != decisions.rend(); ++d) {
    std::size_t at = 0;
    for (int u : d->scope)
      at = at * static_cast<std::size_t>(sizes[u]) + static_cast<std::size_t>(minimum.assignment[u]);
    minimum.assignment[d->variable] = (*d->best)[at];
  }
  return minimum;
}

Least least_per_value(const std::vector<int>& sizes, const std::vector<Factor>& factors, const Order& order,
                      std::int64_t enough, std::int64_t most) {
  BucketTree<Price> tree(sizes, in_prices(factors), order, false);
  std::vector<Bucket<Price>> buckets;
  std::vector<Message<Price>> sent;
  for (std::size_t i = 0; i < order.variables.size(); ++i) {
    buckets.push_back(tree.next());
    sent.push_back(tree.send(buckets.back()));
  }
  Least result{std::min(infinite_price, tree.rest() + tree.constant()), {}};
  if (result.minimum > enough) return result;
  std::vector<std::vector<Price>>& least = result.per_value;
  least.reserve(sizes.size());
  for (int size : sizes) least.emplace_back(size, infinite_price);
  if (result.minimum >= infinite_price) return result;
  struct Beyond {
    Tables<Price>::Entry entry;
    Price constant;
  };
  std::vector<Beyond> beyond(buckets.size());
  std::map<std::pair<std::vector<int>, int>, Outside> passed; // by signature and the table beyond
  for (std::size_t i = buckets.size(); i-- > 0;) {
    const Bucket<Price>& bucket = buckets[i];
    const std::vector<Price>& message = *sent[i].entry.table;
    if (bucket.scope.empty()) // nothing follows
      beyond[i] = {tree.tables().add(std::vector<Price>{0}),
                   tree.rest() - message[0] + tree.constant() - sent[i].constant};
    std::vector<int> key = signature(bucket, sizes);
    for (const auto& input : bucket.inputs) key.push_back(input.source < 0 ? 0 : 1);
    auto [outside, fresh] = passed.try_emplace({std::move(key), beyond[i].entry.number});
    if (fresh) {
      const Rest rest{*beyond[i].entry.table, message,
                      std::min(most, infinite_price - 1) - beyond[i].constant - sent[i].constant};
      outside->second = pass_back(bucket, rest, sizes, tree.tables());
    }
    for (std::size_t x = 0; x < least[bucket.variable].size(); ++x)
      least[bucket.variable][x] = std::min(infinite_price, outside->second.least[x] + beyond[i].constant);
    std::size_t from = 0;
    for (const auto& input : bucket.inputs) {
      if (input.source < 0) continue;
      beyond[input.source] = {outside->second.tables[from],
                              beyond[i].constant + outside->second.constants[from] - sent[input.source].constant};
      ++from;
    }
  }
  return result;
}

} // namespace soybean::plan
