#include "plan/savings.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::Recompute;

constexpr std::array<Recompute, 3> kinds{Recompute::none, Recompute::cheap, Recompute::segments};

/// Divisors of the batch from 1 on, each at least twice the one before, of a graph of so many nodes, all of which each
/// part repeats.
std::vector<std::int64_t> numbers_of_parts(std::int64_t batch, std::int64_t nodes) {
  constexpr std::int64_t most_nodes = 8192;
  std::vector<std::int64_t> numbers = {1};
  for (std::int64_t parts = 2; parts <= std::min(batch, most_nodes / nodes); ++parts)
    if (batch % parts == 0 && parts >= 2 * numbers.back()) numbers.push_back(parts);
  return numbers;
}

/// Statistics of batch norm are those of a whole batch.
bool has_statistics(const Graph& graph) {
  return std::any_of(graph.tensors.begin(), graph.tensors.end(), [](const graph::Tensor& tensor) {
    return tensor.producer != graph::none && tensor.in_evaluation != graph::none;
  });
}

class Choosing {
public:
  Choosing(const Build& build, const tiling::Mesh& mesh, const Options& options)
      : build_(build), mesh_(mesh), options_(options) {}

  /// Looks at plans that are found without regard to memory, for numbers of parts that ascend: more parts will not be
  /// cheaper, but leaner.
  void look(Recompute recompute, const std::vector<std::int64_t>& parts) {
    Options free = options_;
    free.memory = 0;
    std::vector<Size> sizes;
    for (const std::int64_t microbatches : parts) {
      Graph graph = build_({microbatches, recompute});
      Plan plan = make_plan(graph, mesh_, free);
      const std::int64_t peak = options_.peak(graph, plan);
      if (!least_price_) least_price_ = plan.price();
      if (best_ && plan.price() >= best_->plan.price()) return;
      if (peak <= options_.memory) {
        best_ = Planned{std::move(graph), std::move(plan)};
        return;
      }
      sizes.push_back({microbatches, peak});
      if (is_hopeless(sizes)) return;
    }
  }

  /// Whether nothing cheaper is to be expected.
  bool done() const { return best_ && best_->plan.price() <= least_price_.value_or(0); }
  bool found() const { return best_.has_value(); }

  /// Looks for plans that fit, be they dearer.
  void search(const Savings& savings) {
    Options options = options_;
    if (best_) options.most_price = best_->plan.price();
    Graph graph = build_(savings);
    Shortfall shortfall;
    std::optional<Plan> plan = find_plan(graph, mesh_, options, shortfall);
    if (!plan && !best_)
      refuse_memory(options_, shortfall,
                    fmt::format(", with train.microbatches = {} and train.recompute = \"{}\"", graph.microbatches,
                                to_string(graph.recompute)),
                    "more ranks or a smaller data.batch");
    if (plan && (!best_ || plan->price() < best_->plan.price())) best_ = Planned{std::move(graph), std::move(*plan)};
  }

  Planned result() && {
    ensure(best_.has_value(), "no plan and no refusal");
    return std::move(best_).value_or(Planned{});
  }

private:
  struct Size {
    std::int64_t parts, peak;
  };

  /// Whether by the last two sizes any number of parts takes far too much.
  bool is_hopeless(const std::vector<Size>& sizes) const {
    if (sizes.size() < 2) return false;
    const Size &a = sizes[sizes.size() - 2], &b = sizes.back();
    const std::int64_t limit = (b.peak * b.parts - a.peak * a.parts) / (b.parts - a.parts);
    return limit / 4 * 3 > options_.memory;
  }

  const Build& build_;
  const tiling::Mesh& mesh_;
  const Options& options_;
  std::optional<std::int64_t> least_price_;
  std::optional<Planned> best_;
};

/// Numbers of parts to try in the order of trying: those that leave a sample for each rank, then the others.
std::array<std::vector<std::int64_t>, 2> parts_to_try(const Savings& given, std::int64_t batch, std::int64_t ranks,
                                                      const Graph& whole) {
  if (given.microbatches > 0) return {{{given.microbatches}, {}}};
  if (has_statistics(whole)) return {{{1}, {}}};
  std::array<std::vector<std::int64_t>, 2> parts;
  for (const std::int64_t number : numbers_of_parts(batch, static_cast<std::int64_t>(whole.nodes.size())))
    parts[number == 1 || batch / number >= ranks ? 0 : 1].push_back(number);
  return parts;
}

} // namespace

Planned make_plan_with(const Savings& given, std::int64_t batch, const Build& build, const tiling::Mesh& mesh,
                       const Options& options) {
  const Savings first{std::max<std::int64_t>(given.microbatches, 1), given.recompute.value_or(Recompute::none)};
  Graph graph = build(first);
  const bool open = given.microbatches == 0 || !given.recompute;
  if (options.memory == 0 || !open) {
    Plan plan = make_plan(graph, mesh, options);
    return {std::move(graph), std::move(plan)};
  }
  const auto tried = parts_to_try(given, batch, tiling::ranks(mesh), graph);
  std::vector<Recompute> open_kinds(kinds.begin(), kinds.end());
  if (given.recompute) open_kinds = {*given.recompute};
  Choosing choosing(build, mesh, options);
  for (const std::vector<std::int64_t>& parts : tried) {
    for (const Recompute kind : open_kinds)
      if (!choosing.done()) choosing.look(kind, parts);
    if (choosing.found()) break;
  }
  if (choosing.done()) return std::move(choosing).result();
  const std::int64_t least = tried[0].front(), most = tried[0].back();
  const bool dearer = !choosing.found();
  if (dearer) choosing.search({most, open_kinds.back()}); // what holds least
  for (const Recompute kind : open_kinds)
    if (!choosing.done() && !(dearer && least == most && kind == open_kinds.back())) choosing.search({least, kind});
  return std::move(choosing).result();
}

std::string savings_text(const Graph& graph) {
  std::string text;
  if (graph.microbatches > 1) text += fmt::format(", {} microbatches", graph.microbatches);
  if (graph.recompute != Recompute::none) text += fmt::format(", recompute {}", to_string(graph.recompute));
  return text;
}

} // namespace soybean::plan
