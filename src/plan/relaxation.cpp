#include "plan/relaxation.hpp"

#include "plan/star.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace soybean::plan {
namespace {

constexpr std::size_t most_outcomes = 4096; ///< of one term, to be told apart

struct Neighbour {
  std::size_t star, link;
  bool earlier, later; // the star has a variable before, after this one
};

} // namespace

class Relaxation::Sweeper {
public:
  Sweeper(const Problem& problem, std::int64_t limit) : problem_(problem), limit_(limit) {
    const std::size_t count = problem.values.size();
    alive_.resize(count);
    own_.resize(count);
    bounds_.resize(count);
    for (std::size_t v = 0; v < count; ++v) {
      alive_[v].resize(problem.values[v].size());
      std::iota(alive_[v].begin(), alive_[v].end(), 0);
      own_[v] = problem.computing.empty() ? std::vector<std::int64_t>(alive_[v].size(), 0) : problem.computing[v];
      bounds_[v].assign(alive_[v].size(), 0);
    }
    order_variables();
    for (const Term& term : problem.terms)
      if (is_free_source(problem.model->graph->tensors[term.tensor])) {
        star_of_.push_back(-1);
      } else {
        star_of_.push_back(static_cast<int>(stars_.size()));
        stars_.emplace_back(term);
      }
    connect();
  }

  void lower_limit(std::int64_t limit) { limit_ = std::min(limit_, limit); }
  void sweep() {
    visit(true);
    visit(false);
  }
  std::int64_t bound() const { return total_; }
  const std::vector<std::vector<int>>& values() const { return alive_; }
  std::int64_t bound(int variable, int value) const { return bounds_[variable][value]; }
  std::vector<std::vector<int>> values(std::int64_t price) const {
    std::vector<std::vector<int>> within = alive_;
    for (std::size_t v = 0; v < within.size(); ++v)
      std::erase_if(within[v], [&](int x) { return bounds_[v][x] > price; });
    return within;
  }
  std::optional<std::vector<Outcome>> outcomes(std::size_t term, const std::vector<std::vector<int>>& within,
                                               std::int64_t price, std::size_t most) {
    if (star_of_[term] < 0) return std::vector{Outcome{0, {}}}; // as it is read
    Star& star = stars_[star_of_[term]];
    std::vector<Outcome> list;
    if (!star.outcomes(within, std::min(limit_, price) - total_, price >= limit_, std::min(most, most_outcomes), list))
      return {};
    return list;
  }

private:
  void order_variables() {
    const graph::Graph& graph = *problem_.model->graph;
    order_.resize(problem_.values.size());
    std::iota(order_.begin(), order_.end(), 0);
    const auto layer = [&](int v) { return graph.nodes[problem_.model->members[v][0]].layer; };
    std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return layer(a) < layer(b); });
  }

  void connect() {
    std::vector<int> place(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) place[order_[i]] = static_cast<int>(i);
    neighbours_.resize(order_.size());
    for (std::size_t t = 0; t < stars_.size(); ++t) {
      stars_[t].start(problem_.values);
      const std::vector<const Link*>& links = stars_[t].links();
      for (std::size_t i = 0; i < links.size(); ++i) {
        Neighbour n{t, i, false, false};
        for (const Link* other : links) {
          n.earlier = n.earlier || place[other->variable] < place[links[i]->variable];
          n.later = n.later || place[other->variable] > place[links[i]->variable];
        }
        neighbours_[links[i]->variable].push_back(n);
      }
    }
    own_least_.assign(order_.size(), 0);
    for (std::size_t v = 0; v < order_.size(); ++v) update_least(static_cast<int>(v));
  }

  void visit(bool forward) {
    for (std::size_t i = 0; i < order_.size() && total_ < never; ++i) {
      const int v = order_[forward ? i : order_.size() - 1 - i];
      collect(v);
      exclude(v);
      if (!alive_[v].empty()) distribute(v, forward);
    }
  }

  /// Moves all that the variable's terms can tell about its values into its own costs.
  void collect(int v) {
    for (const Neighbour& n : neighbours_[v]) {
      const std::vector<std::int64_t> told = stars_[n.star].marginals(n.link, alive_, limit_ - total_);
      std::vector<std::int64_t>& given = stars_[n.star].given(n.link);
      std::erase_if(alive_[v], [&](int x) {
        if (told[x] >= never / 2) return bounds_[v][x] = never, true;
        given[x] += told[x];
        own_[v][x] += told[x];
        return false;
      });
    }
    update_least(v);
  }

  void update_least(int v) {
    total_ -= own_least_[v];
    std::int64_t least = never;
    for (int x : alive_[v]) least = std::min(least, own_[v][x]);
    own_least_[v] = least;
    total_ += least;
  }

  void exclude(int v) {
    const std::int64_t rest = total_ - own_least_[v];
    std::erase_if(alive_[v], [&](int x) {
      std::int64_t& bound = bounds_[v][x];
      bound = std::max(bound, rest + own_[v][x]);
      if (bound > limit_) return bound = never, true;
      return false;
    });
    update_least(v);
  }

  /// Hands the differences between its values to the terms that lead on, to be told to the variables there.
  void distribute(int v, bool forward) {
    const std::vector<Neighbour>& near = neighbours_[v];
    const auto later = std::count_if(near.begin(), near.end(), [](const Neighbour& n) { return n.later; });
    const auto earlier = std::count_if(near.begin(), near.end(), [](const Neighbour& n) { return n.earlier; });
    const std::int64_t shares = std::max<std::int64_t>(later, earlier);
    if (shares == 0) return;
    for (const Neighbour& n : near) {
      if (forward ? !n.later : !n.earlier) continue;
      std::vector<std::int64_t>& given = stars_[n.star].given(n.link);
      for (int x : alive_[v]) given[x] -= (own_[v][x] - own_least_[v]) / shares;
    }
    const auto sent = forward ? later : earlier;
    for (int x : alive_[v]) own_[v][x] -= sent * ((own_[v][x] - own_least_[v]) / shares);
    update_least(v);
  }

  const Problem& problem_;
  std::int64_t limit_;
  std::vector<int> order_;
  std::vector<Star> stars_;
  std::vector<int> star_of_; // per term, -1: none
  std::vector<std::vector<Neighbour>> neighbours_;
  std::vector<std::vector<int>> alive_;
  std::vector<std::vector<std::int64_t>> own_;    // per variable and value: what it was told and kept
  std::vector<std::int64_t> own_least_;           // its minimum over what is alive
  std::int64_t total_ = 0;                        // their sum, the bound: what is left of a term is never negative
  std::vector<std::vector<std::int64_t>> bounds_; // per variable and value
};

Relaxation::Relaxation(const Problem& problem, std::int64_t limit)
    : sweeper_(std::make_unique<Sweeper>(problem, limit)) {}
Relaxation::~Relaxation() = default;

void Relaxation::lower_limit(std::int64_t limit) {
  sweeper_->lower_limit(limit);
}
void Relaxation::sweep() {
  sweeper_->sweep();
}
std::int64_t Relaxation::bound() const {
  return sweeper_->bound();
}
const std::vector<std::vector<int>>& Relaxation::values() const {
  return sweeper_->values();
}
std::vector<std::vector<int>> Relaxation::values(std::int64_t price) const {
  return sweeper_->values(price);
}
std::optional<std::vector<Outcome>> Relaxation::outcomes(std::size_t term, const std::vector<std::vector<int>>& within,
                                                         std::int64_t price, std::size_t most) {
  return sweeper_->outcomes(term, within, price, most);
}
std::int64_t Relaxation::bound(int variable, int value) const {
  return sweeper_->bound(variable, value);
}

Outcomes::Outcomes(Relaxation& relaxation, std::int64_t price)
    : relaxation_(relaxation), price_(price), within_(relaxation.values(price)) {}

const std::optional<std::vector<Outcome>>& Outcomes::of(std::size_t term, std::size_t most) {
  const auto [known, fresh] = known_.try_emplace(term);
  if (fresh || (!known->second.list && known->second.most < most))
    known->second = {most, relaxation_.outcomes(term, within_, price_, most)};
  return known->second.list;
}

} // namespace soybean::plan
