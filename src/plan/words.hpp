#pragma once
// What reports are made of: words for how work is split, sizes, tables of aligned columns. Called by src/plan's reports
// and by src/explain.
#include "graph/graph.hpp"
#include "ops/form.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::plan {

/// "245.50 MB" (10^6 bytes), "1.20 kB", "17 B".
std::string bytes_text(std::int64_t bytes);

/// "1.23 ms", "56.7 us", "12.30 s".
std::string seconds_text(double seconds);

/// A price under an objective.
std::string price_text(Objective objective, std::int64_t price);

/// "batch", "height", "width", "features" (any other index of the result), "groups", "sum" (an index summed over),
/// "replicated", "partial".
std::string index_word(const ops::Form& form, ops::Choice choice);

/// "batch/4 features/2": over how many ranks a node that does `choices` spreads each; "whole" where there are no cuts.
std::string spread_text(const ops::Form& form, const tiling::Mesh& mesh, const std::vector<ops::Choice>& choices);

/// The same of a node under a plan.
std::string split_text(const graph::Graph& graph, const Plan& plan, graph::NodeId node);

/// "data", "spatial" (rows and columns of images), "model", "hybrid", "-": which kinds of indices a node splits.
std::string kind_of(const graph::Graph& graph, const Plan& plan, graph::NodeId node);

/// A layer's first forward node, which does most of its work; none if it has no node.
graph::NodeId main_node(const graph::Graph& graph, int layer);

/// The layer a tensor's bytes are booked to: its producer's, or its first user's; none if it has neither.
int layer_of(const graph::Graph& graph, graph::TensorId tensor);

/// Of a tensor in the plan's bytes; 0 for control traffic.
std::int64_t data_bytes(const graph::Graph& graph, const Plan& plan, graph::TensorId tensor);

/// What a step moves for each layer's tensors (layer_of), all ranks together.
std::vector<std::int64_t> bytes_by_layer(const graph::Graph& graph, const Plan& plan);

/// A tiling that does the same on each of several cuts as one entry.
std::string tiling_text(const tiling::Tiling& tiling);

/// "split(0)/4 partial/2": runs of equal cuts, and how many ranks each run is over; "whole" where there are no cuts.
std::string tiling_words(const tiling::Tiling& tiling, const tiling::Mesh& mesh);

/// "proven optimal", "within 1.8 % of the bound"; empty for plans of no claim.
std::string status_text(const Plan& plan);

using Row = std::vector<std::string>;

/// Columns padded to their widest entry (in characters), two spaces before each; `right` says which are set to the
/// right. Rows are as long as `right`. Ends with a newline.
std::string table(const std::vector<Row>& rows, const std::vector<bool>& right);

} // namespace soybean::plan
