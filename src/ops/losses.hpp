#pragma once
// Appends what a model is trained for: one loss, or the weighted sum of several (auxiliary heads). Called by frontends
// and tests, last.
#include "graph/graph.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace soybean::ops {

/// What a loss of elements (mse, binary_cross_entropy) compares with: labels, which stand for one-hot rows, or for the
/// value itself where the input has one feature; the samples themselves (torch.nn.MSELoss(y, x)); or numbers that come
/// with the samples, in the shape of the loss's input.
enum class Against : std::uint8_t { labels, samples, targets };

struct LossTerm {
  std::string name = "loss";                ///< of its layer and metrics
  std::string op = "softmax_cross_entropy"; ///< or "mse", "binary_cross_entropy" (of logits)
  graph::TensorId input = graph::none;
  double weight = 1;          ///< in the sum
  double label_smoothing = 0; ///< softmax_cross_entropy
  Against against = Against::labels;
  /// softmax_cross_entropy: into how many parts the classes may be split (a divisor of them); 1: not at all, one node.
  /// Without, so many as are of use: class_parts(…).
  std::optional<std::int64_t> parts;
};

struct LossesOptions {
  std::vector<LossTerm> terms;
  std::size_t main = 0;   ///< which one counts in validation, with its input as the model's logits
  std::int64_t top_k = 0; ///< of a main softmax_cross_entropy: also counts rows with the label among the first k
  /// Each sample is mixed with a partner: softmax_cross_entropy is share·(that of the sample's label) +
  /// (1 − share)·(that of the partner's), sources "partner_labels" and "shares"; what is counted is the sample's label.
  bool mixed = false;
};

/// Makes the sources "sample_weights" and, where used, "labels" and "targets"; sets metrics, logits and
/// only_in_training. One term of weight 1 is the layer "loss" with its results as metrics. Otherwise each term is a
/// layer of its name, layer "loss" is their weighted sum, and the metrics are that, the main term's, then those of the
/// others; all but the main term's are for training alone. Throws Error naming the layer when something does not fit.
void add_losses(graph::Graph& graph, const LossesOptions& options);

/// Parts of so many classes: 1 below 256, where the logits are as little as what would be sent instead of them; else of
/// the divisors up to 32 one with the most factors of 2, the largest of those.
std::int64_t class_parts(std::int64_t classes);

/// Labels are in [0, this): what the losses that read them can tell apart.
std::int64_t label_classes(const graph::Graph& graph);

/// How many operands a split_softmax_loss has where samples are not mixed; of mixed ones the logit of the partner's
/// label, the partners' labels and the shares follow.
std::size_t plain_operands(const graph::Node& node);

/// Whether the losses make sense of mixed samples: some are of classes, and no other reads labels or targets.
bool can_be_mixed(const graph::Graph& graph);

} // namespace soybean::ops
