#include "app/plan_job.hpp"

#include "app/folders.hpp"
#include "config/table.hpp"
#include "frontend/training.hpp"
#include "plan/plan_file.hpp"
#include "plan/savings.hpp"
#include "plan/words.hpp"
#include "program/memory.hpp"

#include <fmt/format.h>

#include <vector>

namespace soybean::app {
namespace {

config::Table read_table(const Common& common) {
  config::Table root = config::Table::parse(config::read_file(common.model), common.model);
  for (const std::string& assignment : common.overrides) root.apply_override(assignment);
  return root;
}

Job read(const Common& common, std::int64_t times) {
  config::Table root = read_table(common);
  if (times > 1) root.apply_override(fmt::format("data.batch={}", times * config::read_run_config(root).data.batch));
  Job job{.root = root};
  job.config = config::read_run_config(root);
  job.graph = frontend::build_training_graph(root, job.config);
  root.report_unread();
  return job;
}

/// What the configuration says of savings.
plan::Savings given(const Job& job) {
  return {job.config.train.microbatches, frontend::recompute_of(job.config.train)};
}

graph::Graph build(const Job& job, const plan::Savings& savings) {
  return frontend::build_training_graph(
      job.root,
      frontend::with_savings(job.config, savings.microbatches, savings.recompute.value_or(graph::Recompute::none)));
}

void adopt(Job& job, graph::Graph graph) {
  job.graph = std::move(graph);
  job.config = frontend::with_savings(std::move(job.config), job.graph.microbatches, job.graph.recompute);
}

void set_machine(Job& job, const machine::Machine* machine) {
  const config::TrainOptions& train = job.config.train;
  if (machine != nullptr)
    job.setting = machine::make_setting(*machine, job.mesh, machine::precision_of(train.precision, train.tf32));
}

/// The machine where plans are to take the least time there.
const machine::Setting* timed(const Job& job) {
  return job.config.parallel.objective == "time" && job.setting ? &*job.setting : nullptr;
}

} // namespace

std::optional<machine::Machine> read_machine(const Common& common) {
  const config::MachineOptions options = config::read_run_config(read_table(common)).machine;
  if (options.file.empty()) return {};
  const std::string path = machine::find_machine(options.file, machine_folders(), options.where);
  return machine::parse_machine(config::read_file(path), path);
}

Job read_job(const Common& common, int ranks, const machine::Machine* machine, std::int64_t times) {
  Job job = read(common, times);
  const std::vector<std::int64_t>& cuts = job.config.parallel.mesh;
  const std::vector<int> hosts = machine ? machine::ranks_on_hosts(*machine, ranks) : std::vector<int>{ranks};
  job.mesh = cuts.empty() ? tiling::make_mesh(hosts) : tiling::make_mesh(cuts, ranks);
  set_machine(job, machine);
  return job;
}

Job read_job(const Common& common, const tiling::Mesh& mesh, const machine::Machine* machine) {
  Job job = read(common, 1);
  job.mesh = mesh;
  set_machine(job, machine);
  return job;
}

plan::Options options_of(const Job& job) {
  const config::ParallelOptions& parallel = job.config.parallel;
  return {.strategy = parallel.strategy,
          .pins = parallel.pins,
          .pins_where = parallel.pins_where,
          .machine = timed(job),
          .memory = parallel.memory,
          .peak = program::peak_bytes,
          .memory_where = parallel.memory_where};
}

void prepare_for(Job& job, const std::string& text, const std::string& file) {
  adopt(job, build(job, plan::planned_savings(text, file, given(job), job.config.data.batch)));
}

plan::Plan choose(Job& job) {
  const std::string& file = job.config.parallel.plan;
  if (file.empty()) {
    plan::Planned planned = plan::make_plan_with(
        given(job), job.config.data.batch, [&](const plan::Savings& savings) { return build(job, savings); }, job.mesh,
        options_of(job));
    adopt(job, std::move(planned.graph));
    return std::move(planned.plan);
  }
  const std::string text = config::read_file(file);
  prepare_for(job, text, file);
  plan::Plan plan = plan::parse_plan(text, file, job.graph, job.mesh);
  const config::ParallelOptions& parallel = job.config.parallel;
  const std::int64_t needed = parallel.memory == 0 ? 0 : program::peak_bytes(job.graph, plan);
  if (needed > parallel.memory)
    fail("{}, got {} for a rank expected at least {}, what the plan of {} takes", parallel.memory_where,
         plan::bytes_text(parallel.memory), plan::bytes_text(needed), file);
  return plan;
}

plan::Plan named_plan(const Job& job, const plan::Plan& chosen, const std::string& strategy) {
  return chosen.strategy == strategy
             ? chosen
             : plan::make_plan(job.graph, job.mesh, {.strategy = strategy, .machine = timed(job)});
}

} // namespace soybean::app
