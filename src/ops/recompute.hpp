#pragma once
// Recomputation: backward nodes read tensors that are computed a second time instead of kept ones. Hides which tensors
// are kept. Called by autodiff.cpp only.
#include "graph/graph.hpp"

namespace soybean::ops {

/// Makes the backward nodes of a graph, all but repeated parts and late updates, read results of forward nodes that run
/// again (`name:again`, of the backward phase, with the forward node as their twin) right before their first use, so
/// that what the forward pass computed dies in it. What is kept, by graph.recompute:
///   cheap     results of convolutions and products, or the first tensors made from them that backward reads; each
///             third of a chain of tensors that could be computed from one another, too
///   segments  what alone crosses from one segment of nodes to the next, and the last segment (Chen et al.,
///             "Training deep nets with sublinear memory cost", arXiv 1604.06174); segments are such that the least
///             bytes are kept and computed anew together
/// Sums over the batch (statistics of batch norm, losses) are always kept, so that metrics and running averages stay as
/// they are, and so is what is small. Masks of dropout are functions of places and drawn again.
void recompute_activations(graph::Graph& graph);

} // namespace soybean::ops
