#include "plan/factors.hpp"

#include <algorithm>
#include <cmath>

namespace soybean::plan {
namespace {

/// Whether some of the values listed differ in what they need or produce.
bool varies(const Link& link, const std::vector<int>& values) {
  const auto differs = [&](const std::vector<std::int32_t>& column) {
    return std::any_of(values.begin(), values.end(), [&](int x) { return column[x] != column[values[0]]; });
  };
  return (!link.produced.empty() && differs(link.produced)) ||
         std::any_of(link.needed.begin(), link.needed.end(), differs);
}

Cost cost_of(std::int64_t price, std::int64_t held) {
  return price >= never ? infinite_cost : make_cost(price, held);
}

/// Fills the table of a whole term by nested loops over the values of its links, keeping a row of costs, one per stored
/// candidate, for each depth: what produced and needed tilings chosen so far add up to.
class TermTable {
public:
  TermTable(const Term& term, const std::vector<std::vector<int>>& keep)
      : term_(term), keep_(keep), candidates_(term.candidates.size()) {
    for (const Link& link : term.links)
      if (!varies(link, keep[link.variable])) links_.push_back(&link);
    constant_ = links_.size();
    for (const Link& link : term.links)
      if (varies(link, keep[link.variable])) links_.push_back(&link);
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
        from_[at] = cost_of(term_.from[at], 0);
        to_[at] = cost_of(term_.to[at], term_.tilings[id] == term_.candidates[s] ? 0 : term_.held[id]);
      }
  }

  void descend(std::size_t level) {
    if (level == links_.size()) {
      table_.push_back(leaf());
      return;
    }
    const Link& link = *links_[level];
    const std::vector<int>& values = keep_[link.variable];
    const Cost* above = rows_.data() + level * candidates_;
    Cost* row = rows_.data() + (level + 1) * candidates_;
    const std::size_t used = used_.size();
    for (std::size_t i = 0; i < (level < constant_ ? 1 : values.size()); ++i) {
      const int value = values[i];
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
  const std::vector<std::vector<int>>& keep_;
  std::size_t candidates_, constant_ = 0;
  std::vector<const Link*> links_; // those that do not vary first
  std::vector<Cost> from_, to_;    // [tiling][candidate]
  std::vector<Cost> rows_;         // per level, one cost per candidate
  std::vector<std::int32_t> used_;
  std::int32_t produced_ = -1;
  std::vector<Cost> table_;
};

bool contains(const std::vector<std::int32_t>& copies, std::int32_t id) {
  return std::find(copies.begin(), copies.end(), id) != copies.end();
}

} // namespace

Factors::Factors(const Problem& problem, std::vector<std::vector<int>> keep, Outcomes& outcomes, double whole_entries)
    : problem_(problem), keep_(std::move(keep)) {
  for (const auto& values : keep_) sizes_.push_back(static_cast<int>(values.size()));
  const std::vector<int> kinds = kinds_among(problem, keep_);
  for (std::size_t t = 0; t < problem.terms.size(); ++t) add(t, kinds[t], outcomes, whole_entries);
  for (std::size_t v = 0; v < problem.computing.size(); ++v) add_computing(v);
}

void Factors::add_computing(std::size_t variable) {
  std::vector<std::int64_t> key = {computing};
  for (int x : keep_[variable]) key.push_back(problem_.computing[variable][x]);
  const int alike = alike_.try_emplace(std::move(key), static_cast<int>(alike_.size())).first->second;
  pieces_.push_back({{static_cast<int>(variable)}, variable, computing, -1, alike, 1.0 * sizes_[variable]});
}

void Factors::add(std::size_t term, int kind, Outcomes& outcomes, double whole_entries) {
  const Term& t = problem_.terms[term];
  Piece piece{{}, term, whole, -1, 0, static_cast<double>(t.candidates.size())};
  double entries = 1, sum = 0;
  for (const Link& link : t.links) {
    if (!varies(link, keep_[link.variable])) continue;
    piece.scope.push_back(link.variable);
    entries *= sizes_[link.variable];
    sum += sizes_[link.variable];
  }
  if (piece.scope.size() > 2 && entries > whole_entries) {
    const double most = std::ceil(std::min(entries / sum, 1e9)) - 1; // so many that splitting makes tables smaller
    if (const auto& few = outcomes.of(term, static_cast<std::size_t>(most));
        few && static_cast<double>(few->size()) <= most)
      return split(term, kind, *few);
  }
  piece.work *= entries;
  piece.alike = alike_.try_emplace({whole, kind}, static_cast<int>(alike_.size())).first->second;
  pieces_.push_back(std::move(piece));
}

void Factors::split(std::size_t term, int kind, const std::vector<Outcome>& outcomes) {
  const int extra = static_cast<int>(sizes_.size());
  std::vector<std::int64_t> key = {alone, kind};
  for (const Outcome& outcome : outcomes) {
    key.push_back(outcome.stored);
    key.insert(key.end(), outcome.copies.begin(), outcome.copies.end());
    key.push_back(-1);
  }
  const auto alike = [&](int part) {
    key[0] = part;
    return alike_.try_emplace(key, static_cast<int>(alike_.size())).first->second;
  };
  const auto count = static_cast<double>(outcomes.size());
  const int number = static_cast<int>(outcomes_.size());
  pieces_.push_back({{extra}, term, alone, number, alike(alone), count});
  const std::vector<Link>& links = problem_.terms[term].links;
  for (std::size_t l = 0; l < links.size(); ++l) {
    const int v = links[l].variable;
    const bool free = varies(links[l], keep_[v]);
    pieces_.push_back({free ? std::vector<int>{v, extra} : std::vector<int>{extra}, term, static_cast<int>(l), number,
                       alike(static_cast<int>(l)), count * sizes_[v]});
  }
  sizes_.push_back(static_cast<int>(outcomes.size()));
  outcomes_.push_back(outcomes);
}

Order Factors::order() const {
  std::vector<std::vector<int>> scopes;
  std::vector<int> alike;
  std::vector<char> seen(alike_.size(), 0);
  double table = 0, work = 0;
  for (const Piece& piece : pieces_) {
    scopes.push_back(piece.scope);
    alike.push_back(piece.alike);
    double entries = 1;
    for (int v : piece.scope) entries *= sizes_[v];
    table = std::max(table, entries);
    if (!seen[piece.alike]) work += piece.work;
    seen[piece.alike] = 1;
  }
  Order order = elimination_order(sizes_, scopes, alike);
  order.largest_table = std::max(order.largest_table, table);
  order.work += work;
  return order;
}

std::vector<Factor> Factors::tables() const {
  std::vector<std::shared_ptr<const std::vector<Cost>>> made(alike_.size());
  std::vector<Factor> factors;
  for (const Piece& piece : pieces_) {
    auto& table = made[piece.alike];
    if (!table) table = std::make_shared<const std::vector<Cost>>(table_of(piece));
    factors.push_back({piece.scope, table});
  }
  return factors;
}

std::vector<Cost> Factors::table_of(const Piece& piece) const {
  if (piece.part == computing) {
    std::vector<Cost> table;
    for (int x : keep_[piece.term]) table.push_back(make_cost(problem_.computing[piece.term][x], 0));
    return table;
  }
  const Term& term = problem_.terms[piece.term];
  if (piece.part == whole) return TermTable(term, keep_).run();
  if (piece.part != alone) return pair_table(piece);
  std::vector<Cost> table;
  const std::size_t stored = term.candidates.size();
  for (const Outcome& outcome : outcomes_[piece.extra]) {
    Cost cost = make_cost(0, term.held_stored[outcome.stored]);
    for (std::int32_t id : outcome.copies) cost += make_cost(term.to[id * stored + outcome.stored], term.held[id]);
    table.push_back(cost);
  }
  return table;
}

/// Each copy that costs nothing is counted as held once for every node that needs it.
std::vector<Cost> Factors::pair_table(const Piece& piece) const {
  const Term& term = problem_.terms[piece.term];
  const Link& link = term.links[piece.part];
  const std::size_t stored = term.candidates.size();
  const std::vector<int>& values = keep_[link.variable];
  std::vector<Cost> table;
  for (std::size_t i = 0; i < (piece.scope.size() == 1 ? 1 : values.size()); ++i)
    for (const Outcome& outcome : outcomes_[piece.extra]) {
      Cost cost = 0;
      if (!link.produced.empty()) cost += cost_of(term.from[link.produced[values[i]] * stored + outcome.stored], 0);
      for (const auto& column : link.needed) {
        const std::int32_t id = column[values[i]];
        if (contains(outcome.copies, id)) continue;
        const bool itself = term.tilings[id] == term.candidates[outcome.stored];
        cost += term.to[id * stored + outcome.stored] == 0 ? make_cost(0, itself ? 0 : term.held[id]) : infinite_cost;
      }
      table.push_back(std::min(cost, infinite_cost));
    }
  return table;
}

} // namespace soybean::plan
