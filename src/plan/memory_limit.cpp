#include "plan/memory_limit.hpp"

#include "plan/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace soybean::plan {
namespace {

class Fitting {
public:
  Fitting(const Setting& setting, const Options& options, const std::function<Found()>& plan,
          const std::function<std::vector<Found>()>& others)
      : setting_(setting), options_(options), plan_(plan), others_(others) {}

  Found run() {
    Found cheapest = plan_();
    if (!cheapest.found || peak(cheapest) <= options_.memory) return cheapest;
    if (options_.most_price > 0 && cheapest.plan.price() >= options_.most_price) return {};
    const std::int64_t bound = cheapest.bound, price = cheapest.plan.price();
    // A charge of 1: all that is held costs as much as all that is moved.
    const double unit = static_cast<double>(std::max<std::int64_t>(price, 1)) /
                        static_cast<double>(std::max<std::int64_t>(cheapest.plan.held_bytes, 1));
    constexpr double most = 4096;
    try_charge(most * unit);
    for (Found& other : others_())
      if (other.found) take(std::move(other));
    if (!best_.found && is_far()) return {};
    double below = 0, above = 0; // charges that do not do, and do
    const double factor = best_.found ? 4 : 16;
    for (double charge = 1.0 / 64; charge <= most && above == 0; charge *= factor)
      (try_charge(charge * unit) ? above : below) = charge;
    if (!best_.found) return {};
    constexpr int halvings = 4;
    for (int i = 0; i < halvings && above > 0; ++i) {
      const double charge = below == 0 ? above / 4 : std::sqrt(below * above);
      (try_charge(charge * unit) ? above : below) = charge;
    }
    best_.bound = std::min(bound, best_.plan.price());
    best_.optimal = best_.bound == best_.plan.price();
    return std::move(best_);
  }

  std::int64_t least() const { return least_; }
  Shortfall shortfall() const { return {least_, largest()}; }

private:
  std::int64_t peak(const Found& found) {
    const std::int64_t bytes = options_.peak(*setting_.model.graph, found.plan);
    if (least_ == 0 || bytes < least_) {
      least_ = bytes;
      leanest_ = found.plan;
    }
    return bytes;
  }

  /// Whether nothing in between will fit where neither the cheapest nor the leanest does.
  bool is_far() const { return static_cast<double>(least_) > 1.25 * static_cast<double>(options_.memory); }

  /// Whether the best plan under that charge fits.
  bool try_charge(double per_byte) {
    setting_.costs.charge(per_byte);
    Found found = plan_();
    setting_.costs.charge(0);
    if (!found.found) return false;
    found.plan.penalty = 0;
    return take(std::move(found));
  }

  bool take(Found found) {
    if (peak(found) > options_.memory) return false;
    if (!best_.found || found.plan.price() < best_.plan.price()) best_ = std::move(found);
    return true;
  }

  /// "1.20 GB of 'a', 3.00 MB of 'b'": what takes most under the leanest plan.
  std::string largest() const {
    constexpr std::size_t named = 3;
    const graph::Graph& graph = *setting_.model.graph;
    std::vector<std::pair<std::int64_t, std::string>> held;
    for (std::size_t t = 0; t < graph.tensors.size(); ++t)
      if (!is_free_source(graph.tensors[t]) && graph.tensors[t].previous == graph::none)
        held.emplace_back(largest_block_bytes(graph.tensors[t], leanest_.stored[t], leanest_.mesh),
                          graph.tensors[t].name);
    std::stable_sort(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> largest;
    for (std::size_t i = 0; i < std::min(named, held.size()); ++i)
      largest.push_back(fmt::format("{} of '{}'", bytes_text(held[i].first), held[i].second));
    return fmt::format("{}", fmt::join(largest, ", "));
  }

  const Setting& setting_;
  const Options& options_;
  const std::function<Found()>& plan_;
  const std::function<std::vector<Found>()>& others_;
  Found best_;
  std::int64_t least_ = 0; ///< that any plan takes
  Plan leanest_;           ///< the one that does
};

} // namespace

Found within_memory(const Setting& setting, const Options& options, const std::function<Found()>& plan,
                    const std::function<std::vector<Found>()>& others, Shortfall& shortfall) {
  if (options.memory == 0) return plan();
  Fitting fitting(setting, options, plan, others);
  Found found = fitting.run();
  if (!found.found && fitting.least() > 0) shortfall = fitting.shortfall();
  return found;
}

} // namespace soybean::plan
