#include "plan/term_factor.hpp"

#include <algorithm>

namespace soybean::plan {
namespace {

bool varies(const Link& link) {
  const auto differs = [](const std::vector<std::int32_t>& column) {
    return std::any_of(column.begin(), column.end(), [&](std::int32_t id) { return id != column[0]; });
  };
  return differs(link.produced) || std::any_of(link.needed.begin(), link.needed.end(), differs);
}

/// Fills the table by nested loops over the values of the links, keeping a row of costs, one per stored candidate, for
/// each depth: what produced and needed tilings chosen so far add up to.
class TermTable {
public:
  TermTable(const Term& term, const std::vector<int>& sizes) : term_(term), candidates_(term.candidates.size()) {
    for (const Link& link : term.links)
      if (!varies(link)) links_.push_back(&link);
    constant_ = links_.size();
    for (const Link& link : term.links)
      if (varies(link)) links_.push_back(&link);
    for (std::size_t i = 0; i < links_.size(); ++i) counts_.push_back(i < constant_ ? 1 : sizes[links_[i]->variable]);
    price();
    rows_.resize((links_.size() + 1) * candidates_);
    for (std::size_t s = 0; s < candidates_; ++s) rows_[s] = make_cost(0, term.held_stored[s]);
  }

  std::vector<Cost> run() {
    descend(0);
    return std::move(table_);
  }

private:
  void price() {
    const std::size_t tilings = term_.tilings.size();
    from_.resize(tilings * candidates_);
    to_.resize(tilings * candidates_);
    for (std::size_t id = 0; id < tilings; ++id)
      for (std::size_t s = 0; s < candidates_; ++s) {
        const std::size_t at = id * candidates_ + s;
        from_[at] = term_.from[at] >= never ? infinite_cost : make_cost(term_.from[at], 0);
        const std::int64_t held = term_.tilings[id] == term_.candidates[s] ? 0 : term_.held[id];
        to_[at] = term_.to[at] >= never ? infinite_cost : make_cost(term_.to[at], held);
      }
  }

  void descend(std::size_t level) {
    if (level == links_.size()) {
      table_.push_back(leaf());
      return;
    }
    const Link& link = *links_[level];
    const Cost* above = rows_.data() + level * candidates_;
    Cost* row = rows_.data() + (level + 1) * candidates_;
    const std::size_t used = used_.size();
    for (int value = 0; value < counts_[level]; ++value) {
      std::copy_n(above, candidates_, row);
      if (!link.produced.empty()) {
        produced_ = link.produced[value];
        add(row, from_, produced_);
      }
      for (const auto& column : link.needed) {
        if (std::find(used_.begin(), used_.end(), column[value]) != used_.end()) continue;
        used_.push_back(column[value]);
        add(row, to_, column[value]);
      }
      descend(level + 1);
      used_.resize(used);
    }
  }

  void add(Cost* row, const std::vector<Cost>& costs, std::int32_t id) const {
    const Cost* more = costs.data() + static_cast<std::size_t>(id) * candidates_;
    for (std::size_t s = 0; s < candidates_; ++s) row[s] += more[s];
  }

  Cost leaf() const {
    if (term_.may_pass && produced_ == used_[0] && tiling::has_partial(term_.tilings[produced_]))
      return make_cost(0, term_.held[produced_]);
    const Cost* row = rows_.data() + links_.size() * candidates_;
    Cost least = infinite_cost;
    for (std::size_t s = 0; s < candidates_; ++s) least = row[s] < least ? row[s] : least;
    return least;
  }

  const Term& term_;
  std::size_t candidates_, constant_ = 0;
  std::vector<const Link*> links_; // those that do not vary first
  std::vector<int> counts_;
  std::vector<Cost> from_, to_; // [tiling][candidate]
  std::vector<Cost> rows_;      // per level, one cost per candidate
  std::vector<std::int32_t> used_;
  std::int32_t produced_ = -1;
  std::vector<Cost> table_;
};

} // namespace

std::vector<int> term_scope(const Term& term) {
  std::vector<int> scope;
  for (const Link& link : term.links)
    if (varies(link)) scope.push_back(link.variable);
  return scope;
}

Factor term_factor(const Term& term, const std::vector<int>& sizes) {
  return {term_scope(term), TermTable(term, sizes).run()};
}

} // namespace soybean::plan
