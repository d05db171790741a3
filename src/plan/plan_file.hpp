#pragma once
// Plan files: a plan as JSON text that can be read, compared and edited by hand, and is tied to its model, shapes,
// mesh and precision. Hides the JSON library. Called by the programs and src/train.
#include "graph/graph.hpp"
#include "plan/plan.hpp"
#include "plan/savings.hpp"

#include <cstdint>
#include <string>

namespace soybean::plan {

/// `key` says what the plan is for; `nodes` lists, per node, what it does on each cut (nodes that must run where
/// another runs are left out); `tensors` the tiling each is stored in (those that follow from the nodes are left out);
/// `summary` is for people and not read again. Ends with a newline.
std::string plan_text(const graph::Graph& graph, const Plan& plan);

/// Reads plan_text for the same graph on the same mesh; the plan's strategy is "file". `file` names it in errors.
/// Throws Error for text that is not a plan (naming line, key, node or tensor), for a stale one (naming what differs),
/// and for one that is not legal (naming node or tensor).
Plan parse_plan(const std::string& text, const std::string& file, const graph::Graph& graph, const tiling::Mesh& mesh);

/// The savings a plan file is for, where `given` leaves them open. Throws Error for text that is not JSON and for
/// microbatches that do not divide the batch.
Savings planned_savings(const std::string& text, const std::string& file, const Savings& given, std::int64_t batch);

/// The mesh a plan file is for. Throws Error for text that is not a plan.
tiling::Mesh planned_mesh(const std::string& text, const std::string& file);

} // namespace soybean::plan
