#pragma once
// Everything decided before training: settings, graph, mesh, plan, programs. The same on every rank. Made from a model
// file by `read_job`, then `plan_job`; nothing here touches the run's folder or the data's samples.
#include "comm/comm.hpp"
#include "config/options.hpp"
#include "config/table.hpp"
#include "data/reader.hpp"
#include "graph/graph.hpp"
#include "machine/machine.hpp"
#include "plan/plan.hpp"
#include "plan/savings.hpp"
#include "program/program.hpp"
#include "tiling/mesh.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace soybean::train {

/// What the command line gives.
struct Request {
  std::string model_path;
  std::vector<std::string> overrides;            ///< `a.b=value`, in order
  std::vector<std::string> machine_folders = {}; ///< where machines known by name lie
};

struct Job {
  config::RunConfig config;
  std::optional<config::Table> root;       ///< the model file
  std::string resolved;                    ///< the whole configuration as TOML, once there is a plan
  plan::Savings savings;                   ///< that the model file gives
  graph::Graph graph;                      ///< forward, backward and update
  std::optional<machine::Machine> machine; ///< where there is one
  plan::Plan plan;
  std::int64_t scratch = 0; ///< bytes a rank takes beside program::peak_bytes, as far as they are known
  double planning_seconds = 0;
  std::vector<program::Program> programs; ///< [train_program], [evaluate_program]
  std::unique_ptr<data::Reader> reader;
};

constexpr int train_program = 0;
constexpr int evaluate_program = 1;

/// Reads the model file on rank 0 and builds all but the plan and its programs from it on every rank: enough to check
/// whatever else the run takes, before planning. Throws Error, the same on every rank.
Job read_job(const Request& request, comm::Comm& comm);

/// Chooses the plan and makes the programs; may be called again when more is known of scratch. Throws Error, the same
/// on every rank. `given`: a plan of the same model in another precision, whose tilings are used instead of a strategy
/// or plan file.
void plan_job(Job& job, comm::Comm& comm, const std::vector<int>& ranks_per_host, const plan::Plan* given = nullptr);

/// Both.
Job make_job(const Request& request, comm::Comm& comm, const std::vector<int>& ranks_per_host,
             const plan::Plan* given = nullptr);

/// Programs for one rank with the same graph, every node an instruction of its own: what --verify compares with.
std::vector<program::Program> serial_programs(const graph::Graph& graph);

} // namespace soybean::train
