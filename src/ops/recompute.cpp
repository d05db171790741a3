#include "ops/recompute.hpp"

#include "base/error.hpp"
#include "ops/operator.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Phase;
using graph::Recompute;
using graph::TensorId;

/// What takes long enough that its results are kept.
constexpr std::array<std::string_view, 3> products{"conv2d", "conv_transpose2d", "dense"};

bool is_product(const Node& node) {
  return std::find(products.begin(), products.end(), node.op) != products.end();
}

/// Its results are sums over the batch: small, and the same for all who read them.
bool is_sum(const Graph& graph, const Node& node) {
  return find(node.op).sums_batch || std::any_of(node.outputs.begin(), node.outputs.end(),
                                                 [&](TensorId t) { return graph::is_control(graph.tensors[t].role); });
}

/// Chooses, of the results of forward nodes that backward nodes read, those that are kept.
class Keeping {
public:
  explicit Keeping(const Graph& graph)
      : graph_(graph), read_(graph.tensors.size(), 0), last_(graph.tensors.size(), -1) {
    while (forward_ < graph.nodes.size() && graph.nodes[forward_].phase == Phase::forward) ++forward_;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      for (TensorId t : graph.nodes[n].inputs) {
        if (n < forward_) last_[t] = static_cast<NodeId>(n);
        if (graph.nodes[n].phase == Phase::backward && is_result(t)) read_[t] = 1;
      }
  }

  /// Per tensor: whether it is kept, or has no forward node.
  std::vector<char> run() {
    constexpr std::int64_t small = 1000; // so many times less than all that is read is not worth the while
    std::int64_t all = 0;
    for (std::size_t t = 0; t < read_.size(); ++t)
      if (read_[t]) all += graph::bytes(graph_.tensors[t]);
    kept_.assign(graph_.tensors.size(), 1);
    for (std::size_t n = 0; n < forward_; ++n)
      for (TensorId t : graph_.nodes[n].outputs)
        kept_[t] = is_sum(graph_, graph_.nodes[n]) || small * graph::bytes(graph_.tensors[t]) < all ? 1 : 0;
    graph_.recompute == Recompute::cheap ? keep_products() : keep_boundaries();
    return std::move(kept_);
  }

private:
  bool is_result(TensorId t) const {
    const NodeId producer = graph_.tensors[t].producer;
    return producer != graph::none && static_cast<std::size_t>(producer) < forward_;
  }

  void keep_products() {
    std::size_t last_product = 0;
    for (std::size_t n = 0; n < forward_; ++n)
      if (is_product(graph_.nodes[n])) last_product = n;
    // Per tensor: how many that backward reads are computed one from the other, beginning with a kept one; -1 if what
    // it would be computed from is not kept.
    constexpr int longest = 2;
    std::vector<int> chain(graph_.tensors.size(), 0);
    for (std::size_t n = 0; n < forward_; ++n) {
      const Node& node = graph_.nodes[n];
      int before = is_product(node) ? -1 : 0;
      for (TensorId t : node.inputs) before = before < 0 || chain[t] < 0 ? -1 : std::max(before, chain[t]);
      for (TensorId t : node.outputs) {
        if (kept_[t]) continue;
        chain[t] = before < 0 ? -1 : before + read_[t];
        if (read_[t] == 0 || (before >= 0 && chain[t] <= longest && n < last_product)) continue;
        kept_[t] = 1;
        chain[t] = 0;
      }
    }
  }

  void keep_boundaries() {
    find_boundaries();
    std::int64_t total = 0, least = -1;
    for (std::size_t n = 0; n < forward_; ++n) total += read_bytes(n);
    std::vector<TensorId> best;
    std::size_t best_last = 0;
    for (std::int64_t parts = 2; parts * parts <= 4 * static_cast<std::int64_t>(forward_); ++parts) {
      const Segments segments = cut(total / parts);
      if (least >= 0 && segments.bytes >= least) continue;
      least = segments.bytes;
      best = segments.kept;
      best_last = segments.last;
    }
    for (TensorId t : best) kept_[t] = 1;
    for (std::size_t n = best_last; n < forward_; ++n)
      for (TensorId t : graph_.nodes[n].outputs) kept_[t] = 1;
  }

  /// Bytes of a node's results that backward reads and that are not kept anyway.
  std::int64_t read_bytes(std::size_t n) const {
    std::int64_t sum = 0;
    for (TensorId t : graph_.nodes[n].outputs)
      if (read_[t] && !kept_[t]) sum += graph::bytes(graph_.tensors[t]);
    return sum;
  }

  /// Per forward node: the one tensor that all nodes behind it read of those up to it, if it is one and backward reads
  /// it, too.
  void find_boundaries() {
    boundary_.assign(forward_, graph::none);
    std::vector<TensorId> crossing;
    for (std::size_t n = 0; n < forward_; ++n) {
      for (TensorId t : graph_.nodes[n].outputs)
        if (!kept_[t]) crossing.push_back(t);
      std::erase_if(crossing, [&](TensorId t) { return last_[t] <= static_cast<NodeId>(n); });
      if (crossing.size() == 1 && read_[crossing[0]]) boundary_[n] = crossing[0];
    }
  }

  struct Segments {
    std::vector<TensorId> kept;
    std::size_t last = 0;   ///< first node of the last one
    std::int64_t bytes = 0; ///< of what is kept and of the largest segment
  };
  /// Segments of at least so many bytes, ended where one tensor crosses.
  Segments cut(std::int64_t least) const {
    Segments segments;
    std::int64_t kept = 0, largest = 0, segment = 0;
    for (std::size_t n = 0; n < forward_; ++n) {
      segment += read_bytes(n);
      const TensorId boundary = boundary_[n];
      if (segment < least || boundary == graph::none) continue;
      if (!segments.kept.empty() && segments.kept.back() == boundary) continue;
      const std::int64_t bytes = graph::bytes(graph_.tensors[boundary]);
      segments.kept.push_back(boundary);
      segments.last = n + 1;
      kept += bytes;
      largest = std::max(largest, segment - bytes);
      segment = 0;
    }
    segments.bytes = kept + std::max(largest, segment);
    return segments;
  }

  const Graph& graph_;
  std::size_t forward_ = 0;        // nodes of the forward phase, which come first
  std::vector<char> read_;         // per tensor: made by a forward node, read by a backward one
  std::vector<NodeId> last_;       // per tensor: the forward node that reads it last, -1: none
  std::vector<char> kept_;         // per tensor
  std::vector<TensorId> boundary_; // per forward node
};

/// Lists the nodes anew, with those that run again in between.
class Rewriting {
public:
  Rewriting(Graph& graph, std::vector<char> kept)
      : graph_(graph), old_(std::exchange(graph.nodes, {})), kept_(std::move(kept)), again_(graph.tensors.size()) {
    for (std::size_t t = 0; t < again_.size(); ++t) again_[t] = static_cast<TensorId>(t);
  }

  void run() {
    for (graph::Tensor& tensor : graph_.tensors) tensor.consumers.clear();
    for (Node& node : old_) {
      if (node.phase == Phase::backward)
        for (TensorId& t : node.inputs) t = available(t);
      if (node.twin != graph::none) node.twin = number_[node.twin];
      number_.push_back(static_cast<NodeId>(graph_.nodes.size()));
      append_again(node);
    }
  }

private:
  /// What backward nodes read for a tensor.
  TensorId available(TensorId t) {
    if (kept_.size() <= static_cast<std::size_t>(t) || kept_[t] || again_[t] != t) return again_[t];
    const NodeId twin = graph_.tensors[t].producer; // a forward node, which has its new number
    const Node node = graph_.nodes[twin];
    NewNode copy{.name = node.name + ":again",
                 .op = node.op,
                 .attributes = node.attributes,
                 .phase = Phase::backward,
                 .layer = node.layer,
                 .twin = twin};
    for (TensorId input : node.inputs) copy.inputs.push_back(available(input));
    const std::vector<TensorId> results = append(graph_, std::move(copy));
    for (std::size_t i = 0; i < results.size(); ++i)
      if (!kept_[node.outputs[i]]) again_[node.outputs[i]] = results[i];
    return again_[t];
  }

  /// Puts a node that is there already behind the others.
  void append_again(const Node& node) {
    const auto id = static_cast<NodeId>(graph_.nodes.size());
    for (TensorId t : node.outputs) graph_.tensors[t].producer = id;
    for (TensorId t : node.inputs) {
      std::vector<NodeId>& consumers = graph_.tensors[t].consumers;
      if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
    }
    graph_.nodes.push_back(node);
  }

  Graph& graph_;
  std::vector<Node> old_;
  std::vector<char> kept_;      // per tensor that was there
  std::vector<TensorId> again_; // per tensor that was there: what backward nodes read
  std::vector<NodeId> number_;  // per old node
};

} // namespace

void recompute_activations(Graph& graph) {
  if (graph.recompute == Recompute::none) return;
  Rewriting(graph, Keeping(graph).run()).run();
}

} // namespace soybean::ops
