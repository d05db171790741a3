#pragma once
// A term of the relaxation: a tensor between the node that makes it and those that use it. Hides how the stored tiling
// and the copies that consumers share are minimised over. Called by relaxation.cpp only.
#include "plan/problem.hpp"
#include "plan/relaxation.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace soybean::plan {

/// One term of the relaxation. What it gave to a variable's value (its message) is subtracted from its own cost. What
/// no plan within `slack` of the bound can contain (a stored tiling, a copy in some tiling) is forgotten on the way.
class Star {
public:
  explicit Star(const Term& term) : term_(term), candidates_(term.candidates.size()) {
    for (const Link& link : term.links) {
      if (link.needed.empty())
        maker_ = static_cast<int>(links_.size());
      else
        consumers_.push_back(links_.size());
      links_.push_back(&link);
    }
    for (std::size_t s = 0; s < candidates_; ++s) {
      stored_.push_back(s);
      copies_.emplace_back();
      for (std::size_t id = 0; id < term.tilings.size(); ++id)
        if (term.to[id * candidates_ + s] < never) copies_.back().push_back(static_cast<std::int32_t>(id));
    }
  }

  const std::vector<const Link*>& links() const { return links_; }
  std::vector<std::int64_t>& given(std::size_t link) { return given_[link]; }
  void start(const std::vector<std::vector<Choices>>& values) {
    for (const Link* link : links_) given_.emplace_back(values[link->variable].size(), 0);
  }

  /// Per value of one link's variable: the least cost of the term, messages subtracted, `never` where only more than
  /// slack is possible. `alive` is per variable.
  std::vector<std::int64_t> marginals(std::size_t link, const std::vector<std::vector<int>>& alive,
                                      std::int64_t slack) {
    std::vector<std::int64_t> result(given_[link].size(), never);
    slack_ = slack;
    std::erase_if(stored_, [&](std::size_t s) { return !through(s, link, alive, result); });
    if (term_.may_pass) pass(link, alive, result);
    return result;
  }

  /// Adds the outcomes that could be part of a plan wanted. False: there are more than `most`, or nodes that need the
  /// tensor in several tilings at once. Not `for_good`: less is wanted than will be later.
  bool outcomes(const std::vector<std::vector<int>>& alive, std::int64_t slack, bool for_good, std::size_t most,
                std::vector<Outcome>& result) {
    for (std::size_t i : consumers_)
      if (links_[i]->needed.size() > 1) return false;
    slack_ = slack;
    if (for_good) return add_all_outcomes(alive, most, result);
    std::vector<std::vector<std::int32_t>> copies = copies_;
    const bool few = add_all_outcomes(alive, most, result);
    copies_ = std::move(copies);
    return few;
  }

private:
  static constexpr std::size_t most_served = 5; ///< consumers told apart where too many tilings come into question
  static constexpr std::size_t most_tried = 8;  ///< sets of copies gone through for each that may be an outcome
  static constexpr std::size_t most_paid = 9;   ///< tilings of copies whose subsets are gone through

  bool add_all_outcomes(const std::vector<std::vector<int>>& alive, std::size_t most, std::vector<Outcome>& result) {
    levels_.resize((consumers_.size() + 1) * consumers_.size());
    tries_ = most_tried * most;
    for (std::size_t s : stored_) {
      if (!make(s, alive) || !price(s, alive)) continue;
      std::copy(base_.begin(), base_.end(), levels_.begin());
      Outcome outcome{static_cast<int>(s), {}};
      if (!add_outcomes(outcome, 0, 0, 0, most, result)) return false;
    }
    return true;
  }

  /// Adds the outcome at hand and what it becomes with more of the copies from the `next`-th on. `cost`: of its copies;
  /// `extra`: with their detours.
  bool add_outcomes(Outcome& outcome, std::size_t next, std::int64_t cost, std::int64_t extra, std::size_t most,
                    std::vector<Outcome>& result) {
    const std::size_t count = consumers_.size(), level = outcome.copies.size();
    const std::int64_t* each = levels_.data() + level * count; // the least each consumer costs with those copies
    if (tries_-- == 0) return false;
    std::int64_t sum = made_ + cost;
    for (std::size_t i = 0; i < count; ++i) sum = std::min(never, sum + each[i]);
    if (sum < never / 2 && sum <= slack_) {
      if (result.size() >= most) return false;
      result.push_back(outcome);
    }
    if (level == count) return true; // no more copies than consumers
    for (std::size_t k = next; k < paid_.size() && may_do(each, k, cost); ++k) {
      if (all_ + extra + extra_[k] > slack_) continue;
      for (std::size_t i = 0; i < count; ++i)
        levels_[(level + 1) * count + i] = std::min(levels_[level * count + i], least(i, paid_[k]));
      outcome.copies.push_back(paid_[k]);
      const bool few = add_outcomes(outcome, k + 1, cost + price_[k], extra + extra_[k], most, result);
      outcome.copies.pop_back();
      if (!few) return false;
    }
    return true;
  }

  /// made_: the least cost of bringing the tensor into stored candidate s. False: that is not possible.
  bool make(std::size_t s, const std::vector<std::vector<int>>& alive) {
    made_ = 0;
    if (maker_ < 0) return true;
    made_ = never;
    for (int x : alive[links_[maker_]->variable])
      made_ = std::min(made_, produced(*links_[maker_], x, s) - given_[maker_][x]);
    return made_ < never / 2;
  }

  std::int64_t produced(const Link& link, int value, std::size_t s) const {
    return link.produced.empty() ? 0 : term_.from[link.produced[value] * candidates_ + s];
  }
  std::int64_t copy(std::int32_t id, std::size_t s) const {
    return term_.to[static_cast<std::size_t>(id) * candidates_ + s];
  }
  std::int64_t& least(std::size_t consumer, std::int32_t id) {
    return least_[consumer * term_.tilings.size() + static_cast<std::size_t>(id)];
  }

  /// Adds to `result` what is possible with stored candidate s. False: no plan wanted can store that.
  bool through(std::size_t s, std::size_t link, const std::vector<std::vector<int>>& alive,
               std::vector<std::int64_t>& result) {
    if (!make(s, alive) || !price(s, alive)) return false;
    const std::vector<int>& values = alive[links_[link]->variable];
    if (maker_ == static_cast<int>(link)) {
      const std::int64_t served = serve_all();
      for (int x : values) result[x] = std::min(result[x], produced(*links_[link], x, s) - given_[link][x] + served);
      return true;
    }
    const auto me =
        static_cast<std::size_t>(std::find(consumers_.begin(), consumers_.end(), link) - consumers_.begin());
    serve_others(me);
    for (int x : values) {
      const std::int64_t with = with_[static_cast<std::size_t>(links_[link]->needed[0][x])];
      result[x] = std::min(result[x], made_ + produced(*links_[link], x, s) - given_[link][x] + with);
    }
    return true;
  }

  /// least(consumer, tiling): its cheapest value that needs that tiling; base_: in one that costs nothing to copy;
  /// paid_: the others that come into question. False: nothing does.
  bool price(std::size_t s, const std::vector<std::vector<int>>& alive) {
    least_.assign(consumers_.size() * term_.tilings.size(), never);
    for (std::size_t i = 0; i < consumers_.size(); ++i) {
      const Link& link = *links_[consumers_[i]];
      for (int x : alive[link.variable]) {
        std::int64_t& cost = least(i, link.needed[0][x]);
        cost = std::min(cost, produced(link, x, s) - given_[consumers_[i]][x]);
      }
    }
    all_ = made_;
    cheapest_.clear();
    for (std::size_t i = 0; i < consumers_.size(); ++i) {
      std::int64_t best = never;
      for (std::int32_t id : copies_[s]) best = std::min(best, least(i, id));
      if (best >= never / 2) return false;
      cheapest_.push_back(best);
      all_ += best;
    }
    if (all_ > slack_) return false;
    paid_.clear();
    free_.clear();
    price_.clear();
    extra_.clear();
    std::erase_if(copies_[s], [&](std::int32_t id) {
      const std::int64_t price = copy(id, s), detour = detour_to(id);
      if (detour >= never / 2 || all_ + price + detour > slack_) return true;
      (price == 0 ? free_ : paid_).push_back(id);
      if (price == 0) return false;
      price_.push_back(price);
      extra_.push_back(price + detour);
      return false;
    });
    base_.assign(consumers_.size(), never);
    for (std::size_t i = 0; i < consumers_.size(); ++i)
      for (std::int32_t id : free_) base_[i] = std::min(base_[i], least(i, id));
    later_.assign((paid_.size() + 1) * consumers_.size(), never);
    for (std::size_t k = paid_.size(); k-- > 0;)
      for (std::size_t i = 0; i < consumers_.size(); ++i)
        later_[k * consumers_.size() + i] = std::min(later_[(k + 1) * consumers_.size() + i], least(i, paid_[k]));
    return true;
  }

  /// Whether copies that cost so much, with which consumers cost `each`, and any of those from the `next`-th on could
  /// do.
  bool may_do(const std::int64_t* each, std::size_t next, std::int64_t cost) const {
    const std::int64_t* later = later_.data() + next * consumers_.size();
    std::int64_t sum = made_ + cost;
    for (std::size_t i = 0; i < consumers_.size(); ++i) sum = std::min(never, sum + std::min(each[i], later[i]));
    return sum <= slack_;
  }

  /// What it costs beyond everyone's cheapest that some consumer takes that copy. Copies that are all taken are so by
  /// different consumers, so that their detours add up.
  std::int64_t detour_to(std::int32_t id) {
    std::int64_t least_more = never;
    for (std::size_t i = 0; i < consumers_.size(); ++i) least_more = std::min(least_more, least(i, id) - cheapest_[i]);
    return least_more;
  }

  bool by_tilings() const { return paid_.size() <= most_paid; }

  /// Calls f(cost of the copies, least cost per consumer, which of paid_) for all sets of copies.
  template<class F>
  void each_set(const F& f) {
    const std::size_t count = consumers_.size();
    levels_.resize((paid_.size() + 1) * count);
    std::copy(base_.begin(), base_.end(), levels_.begin());
    descend(0, 0, 0, 0, f);
  }
  template<class F>
  void descend(std::size_t level, std::int64_t cost, std::int64_t extra, std::uint32_t open, const F& f) {
    const std::size_t count = consumers_.size();
    const std::int64_t* above = levels_.data() + level * count;
    if (level == paid_.size()) return f(cost, above, open);
    if (!may_do(above, level, cost)) return;
    std::int64_t* row = levels_.data() + (level + 1) * count;
    std::copy_n(above, count, row);
    descend(level + 1, cost, extra, open, f);
    if (all_ + extra + extra_[level] > slack_) return;
    bool helps = false;
    for (std::size_t i = 0; i < count; ++i) {
      row[i] = std::min(above[i], least(i, paid_[level]));
      helps = helps || least(i, paid_[level]) < never / 2;
    }
    if (helps) descend(level + 1, cost + price_[level], extra + extra_[level], open | std::uint32_t{1} << level, f);
  }

  /// The least cost of serving all consumers.
  std::int64_t serve_all() {
    if (!by_tilings()) return group_consumers(), best_.back() + unserved(consumers_.size());
    std::int64_t best = never;
    each_set([&](std::int64_t cost, const std::int64_t* each, std::uint32_t) {
      for (std::size_t i = 0; i < consumers_.size(); ++i) cost = std::min(never, cost + each[i]);
      best = std::min(best, cost);
    });
    return best;
  }

  /// with_[tiling]: the least cost of that copy and of serving all consumers but one.
  void serve_others(std::size_t me) {
    with_.assign(term_.tilings.size(), never);
    if (!by_tilings()) return serve_others_in_groups(me);
    std::int64_t least = never; // of all sets: copies that cost nothing are in each
    each_set([&](std::int64_t cost, const std::int64_t* each, std::uint32_t open) {
      for (std::size_t i = 0; i < consumers_.size(); ++i)
        if (i != me) cost = std::min(never, cost + each[i]);
      least = std::min(least, cost);
      for (; open != 0; open &= open - 1) {
        std::int64_t& with = with_[paid_[static_cast<std::size_t>(std::countr_zero(open))]];
        with = std::min(with, cost);
      }
    });
    for (std::int32_t id : free_) with_[id] = least;
  }

  /// The consumers that are not told apart, but `me`, at no cost of copies: still a lower bound.
  std::int64_t unserved(std::size_t me) {
    std::int64_t sum = 0;
    for (std::size_t i = most_served; i < consumers_.size(); ++i) {
      if (i == me) continue;
      std::int64_t best = base_[i];
      for (std::int32_t id : paid_) best = std::min(best, least(i, id));
      sum += best;
    }
    return sum;
  }

  /// best_[set]: the cheapest way to serve a set of the first consumers, those that need the same tiling sharing one
  /// copy.
  void group_consumers() {
    const std::size_t sets = std::size_t{1} << std::min(consumers_.size(), most_served);
    group_.assign(sets, never);
    sum_.resize(sets);
    const auto add = [&](std::int32_t id, std::int64_t price) {
      sum_[0] = price;
      for (std::size_t set = 1; set < sets; ++set) {
        const auto i = static_cast<std::size_t>(__builtin_ctzll(set));
        sum_[set] = std::min(never, sum_[set & (set - 1)] + least(i, id));
        group_[set] = std::min(group_[set], sum_[set]);
      }
    };
    for (std::int32_t id : free_) add(id, 0);
    for (std::size_t k = 0; k < paid_.size(); ++k) add(paid_[k], price_[k]);
    best_.assign(sets, never);
    best_[0] = 0;
    for (std::size_t set = 1; set < sets; ++set) {
      const std::size_t first = set & (~set + 1), rest = set & ~first;
      for (std::size_t more = rest;; more = (more - 1) & rest) {
        best_[set] = std::min(best_[set], group_[more | first] + best_[rest & ~more]);
        if (more == 0) break;
      }
    }
  }

  void serve_others_in_groups(std::size_t me) {
    group_consumers();
    const std::int64_t rest = unserved(me);
    if (me >= most_served) return std::fill(with_.begin(), with_.end(), best_.back() + rest);
    const std::size_t others = (best_.size() - 1) & ~(std::size_t{1} << me);
    const auto company = [&](std::int32_t id, std::int64_t price) {
      std::int64_t best = never;
      for (std::size_t set = others;; set = (set - 1) & others) {
        std::int64_t cost = price + best_[others & ~set];
        for (std::size_t i = 0; i < consumers_.size() && cost < never; ++i)
          if (set >> i & 1) cost += least(i, id);
        best = std::min(best, cost);
        if (set == 0) break;
      }
      with_[id] = best + rest;
    };
    for (std::int32_t id : free_) company(id, 0);
    for (std::size_t k = 0; k < paid_.size(); ++k) company(paid_[k], price_[k]);
  }

  /// Adds what is possible when the consumer takes a partial tiling exactly as produced.
  void pass(std::size_t link, const std::vector<std::vector<int>>& alive, std::vector<std::int64_t>& result) const {
    const Link& consumer = *links_[consumers_[0]];
    if (maker_ < 0) { // one variable both makes and uses it
      for (int x : alive[consumer.variable])
        if (consumer.produced[x] == consumer.needed[0][x] && tiling::has_partial(term_.tilings[consumer.produced[x]]))
          result[x] = std::min(result[x], -given_[link][x]);
      return;
    }
    const Link& maker = *links_[maker_];
    const bool making = maker_ == static_cast<int>(link);
    std::vector<std::int64_t> other(term_.tilings.size(), never);
    const std::vector<std::int32_t>& theirs = making ? consumer.needed[0] : maker.produced;
    const std::size_t them = making ? consumers_[0] : static_cast<std::size_t>(maker_);
    for (int x : alive[links_[them]->variable])
      if (tiling::has_partial(term_.tilings[theirs[x]]))
        other[theirs[x]] = std::min(other[theirs[x]], -given_[them][x]);
    const std::vector<std::int32_t>& mine = making ? maker.produced : consumer.needed[0];
    for (int x : alive[links_[link]->variable]) result[x] = std::min(result[x], other[mine[x]] - given_[link][x]);
  }

  const Term& term_;
  std::size_t candidates_;
  std::vector<const Link*> links_;
  std::vector<std::size_t> consumers_; // links with needs
  int maker_ = -1;                     // the link that only produces
  std::vector<std::vector<std::int64_t>> given_;
  std::vector<std::size_t> stored_;               // candidates not forgotten
  std::vector<std::vector<std::int32_t>> copies_; // per candidate, tilings not forgotten
  // Of the candidate at hand:
  std::int64_t slack_ = never, made_ = 0;
  std::int64_t all_ = 0; // of serving all consumers if copies cost nothing
  std::size_t tries_ = 0;
  std::vector<std::int32_t> free_, paid_;
  std::vector<std::int64_t> cheapest_; // per consumer: what it adds to that
  std::vector<std::int64_t> later_;    // per place in paid_: the least each consumer costs with those from there on
  std::vector<std::int64_t> price_, extra_; // of paid_: of the copy; with its detour
  std::vector<std::int64_t> base_, least_, levels_, with_, group_, best_, sum_;
};

} // namespace soybean::plan
