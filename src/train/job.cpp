#include "train/job.hpp"

#include "base/error.hpp"
#include "frontend/training.hpp"
#include "ops/losses.hpp"
#include "plan/plan_file.hpp"
#include "plan/planner.hpp"
#include "plan/savings.hpp"
#include "program/memory.hpp"
#include "tiling/mesh.hpp"
#include "train/on_root.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>

namespace soybean::train {

namespace {

config::Table read_document(const Request& request, comm::Comm& comm) {
  const std::string text = text_from_root(comm, [&] { return config::read_file(request.model_path); });
  return on_all_ranks([&] {
    config::Table root = config::Table::parse(text, request.model_path);
    for (const std::string& assignment : request.overrides) root.apply_override(assignment);
    return root;
  });
}

tiling::Mesh choose_mesh(const config::RunConfig& config, const std::vector<int>& ranks_per_host) {
  const int ranks = std::accumulate(ranks_per_host.begin(), ranks_per_host.end(), 0);
  return config.parallel.mesh.empty() ? tiling::make_mesh(ranks_per_host)
                                      : tiling::make_mesh(config.parallel.mesh, ranks);
}

std::optional<machine::Machine> read_machine(const config::MachineOptions& options, const Request& request,
                                             comm::Comm& comm) {
  if (options.file.empty()) return {};
  const std::string text = text_from_root(comm, [&] {
    return config::read_file(machine::find_machine(options.file, request.machine_folders, options.where));
  });
  std::optional<machine::Machine> machine;
  on_all_ranks([&] { machine = machine::parse_machine(text, options.file); });
  return machine;
}

/// The graph with the savings that come with the plan, and the plan.
plan::Planned choose_plan(const Job& job, const tiling::Mesh& mesh, const std::string& plan_text) {
  const config::ParallelOptions& parallel = job.config.parallel;
  const auto build = [&](const plan::Savings& savings) {
    return frontend::build_training_graph(
        *job.root, frontend::with_savings(job.config, savings.microbatches, savings.recompute.value()));
  };
  if (!parallel.plan.empty()) {
    graph::Graph graph = build(plan::planned_savings(plan_text, parallel.plan, job.savings, job.config.data.batch));
    plan::Plan plan = plan::parse_plan(plan_text, parallel.plan, graph, mesh);
    return {std::move(graph), std::move(plan)};
  }
  plan::Options options;
  options.strategy = parallel.strategy;
  options.pins = parallel.pins;
  options.pins_where = parallel.pins_where;
  options.memory = parallel.memory;
  options.peak = [&](const graph::Graph& graph, const plan::Plan& plan) {
    return program::peak_bytes(graph, plan) + job.scratch;
  };
  options.memory_where = parallel.memory_where;
  std::optional<machine::Setting> setting;
  if (parallel.objective == "time" && job.machine) {
    const config::TrainOptions& train = job.config.train;
    setting = machine::make_setting(*job.machine, mesh, machine::precision_of(train.precision, train.tf32));
    options.machine = &*setting;
  }
  return plan::make_plan_with(job.savings, job.config.data.batch, build, mesh, options);
}

plan::Planned recosted(const graph::Graph& graph, plan::Plan plan) {
  plan::evaluate(graph, plan);
  return {graph, std::move(plan)};
}

std::vector<program::Program> lower_both(const graph::Graph& graph, const plan::Plan& plan,
                                         const std::vector<std::string>& skip) {
  std::vector<program::Program> programs;
  for (program::Mode mode : {program::Mode::train, program::Mode::evaluate}) {
    programs.push_back(program::lower(graph, plan, mode));
    program::run_passes(graph, programs.back(), skip);
    program::verify(graph, plan, programs.back());
  }
  return programs;
}

void check_validation(const Job& job) {
  const std::vector<graph::TensorId>& metrics = job.graph.metrics;
  const bool has_accuracy = std::any_of(metrics.begin(), metrics.end(), [&](graph::TensorId t) {
    return job.graph.tensors[t].name.ends_with(".correct");
  });
  if (job.config.train.best_by == "accuracy" && !has_accuracy)
    fail("train.best_by: got \"accuracy\" for a model without one expected \"loss\". its loss knows no classes");
  if (job.reader->info().validation_samples > 0) return;
  const auto refuse = [](std::string_view key) {
    fail("{}: data, got no validation samples expected some to tell the best step by. see src/config/README.md on "
         "[data]",
         key);
  };
  if (job.config.train.patience > 0) refuse("train.patience");
  if (job.config.checkpoint.best) refuse("checkpoint.best");
}

/// Labels of tokens are the tokens that follow; those of one number are of samples of numbers.
void check_labels(const graph::Graph& graph, const Shape& labels) {
  const graph::TensorId input = graph::find_tensor(graph, "input");
  const Shape& batch = graph.tensors[input].shape;
  if (graph.vocabulary > 0 ? labels == Shape{batch[1]} : labels.empty()) return;
  if (graph.vocabulary == 0)
    fail("model.loss: input, got one per position ({}) expected one per sample. put a flatten layer before it",
         to_string(labels));
  fail("model.loss: input, got {} expected one per position of a sequence of tokens, {}. labels are the tokens that "
       "follow",
       labels.empty() ? "one per sample" : to_string(labels) + " positions", batch[1]);
}

data::Expected expected_of(const Job& job) {
  data::Expected expected{.classes = ops::label_classes(job.graph),
                          .seed = job.config.train.seed,
                          .labels = false,
                          .vocabulary = job.graph.vocabulary};
  for (const graph::Tensor& tensor : job.graph.tensors) {
    if (!graph::comes_with_samples(tensor.role) || tensor.first_row > 0) continue;
    const Shape sample(tensor.shape.begin() + 1, tensor.shape.end());
    if (tensor.role == graph::Role::input) expected.sample = sample;
    if (tensor.role == graph::Role::target) expected.targets = sample;
    if (tensor.role != graph::Role::label) continue;
    expected.labels = true;
    check_labels(job.graph, sample);
  }
  return expected;
}

/// Rank 0 opens the source first, so that what is wrong with it is said once; then every rank does.
std::unique_ptr<data::Reader> open(const Job& job, comm::Comm& comm) {
  data::Expected expected;
  on_all_ranks([&] { expected = expected_of(job); });
  std::unique_ptr<data::Reader> reader;
  on_root(comm, [&] { reader = data::open_reader(job.config.data, expected); });
  expected.thorough = false;
  if (!reader) reader = data::open_reader(job.config.data, expected);
  return reader;
}

} // namespace

Job read_job(const Request& request, comm::Comm& comm) {
  const config::Table root = read_document(request, comm);
  Job job;
  on_all_ranks([&] {
    job.config = config::read_run_config(root);
    job.graph = frontend::build_training_graph(root, job.config);
    root.report_unread();
    job.root = root;
    job.savings = {job.config.train.microbatches, frontend::recompute_of(job.config.train)};
  });
  job.machine = read_machine(job.config.machine, request, comm);
  job.reader = open(job, comm);
  on_all_ranks([&] { check_validation(job); });
  return job;
}

void plan_job(Job& job, comm::Comm& comm, const std::vector<int>& ranks_per_host, const plan::Plan* given) {
  std::string plan_text;
  if (given == nullptr && !job.config.parallel.plan.empty())
    plan_text = text_from_root(comm, [&] { return config::read_file(job.config.parallel.plan); });
  on_all_ranks([&] {
    const auto begin = std::chrono::steady_clock::now();
    plan::Planned planned =
        given ? recosted(job.graph, *given) : choose_plan(job, choose_mesh(job.config, ranks_per_host), plan_text);
    job.graph = std::move(planned.graph);
    job.plan = std::move(planned.plan);
    job.config = frontend::with_savings(std::move(job.config), job.graph.microbatches, job.graph.recompute);
    job.resolved = config::resolved_toml(job.config, *job.root);
    job.planning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    plan::verify(job.graph, job.plan);
    job.programs = lower_both(job.graph, job.plan, job.config.parallel.skip_passes);
  });
}

Job make_job(const Request& request, comm::Comm& comm, const std::vector<int>& ranks_per_host,
             const plan::Plan* given) {
  Job job = read_job(request, comm);
  plan_job(job, comm, ranks_per_host, given);
  return job;
}

std::vector<program::Program> serial_programs(const graph::Graph& graph) {
  return lower_both(graph, plan::make_plan(graph, tiling::Mesh{}, {.strategy = "data"}), {"fuse"});
}

} // namespace soybean::train
