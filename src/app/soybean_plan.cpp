// soybean_plan: shows how the network of a model file would be tiled over so many ranks, and what that moves. Needs no
// MPI and no devices. See --help and the README.
#include "app/command_line.hpp"
#include "base/error.hpp"
#include "config/options.hpp"
#include "config/table.hpp"
#include "frontend/training.hpp"
#include "plan/plan_file.hpp"
#include "plan/planner.hpp"
#include "plan/report.hpp"
#include "program/memory.hpp"
#include "program/program.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <new>

namespace {

using namespace soybean;

struct CommandLine {
  app::Common common;
  std::string ranks_text;
  int ranks = 0;
  bool compare = false;
  std::string plan_out;
};

struct Job {
  config::RunConfig config;
  graph::Graph graph;
  tiling::Mesh mesh;
};

Job read_job(const CommandLine& line) {
  config::Table root = config::Table::parse(config::read_file(line.common.model), line.common.model);
  for (const std::string& assignment : line.common.overrides) root.apply_override(assignment);
  Job job;
  job.config = config::read_run_config(root);
  job.graph = frontend::build_training_graph(root, job.config);
  root.report_unread();
  const std::vector<std::int64_t>& cuts = job.config.parallel.mesh;
  job.mesh = cuts.empty() ? tiling::make_mesh(std::vector<int>{line.ranks}) : tiling::make_mesh(cuts, line.ranks);
  return job;
}

/// The plan a run would take.
plan::Plan choose(const Job& job) {
  const config::ParallelOptions& parallel = job.config.parallel;
  if (!parallel.plan.empty())
    return plan::parse_plan(config::read_file(parallel.plan), parallel.plan, job.graph, job.mesh);
  return plan::make_plan(job.graph, job.mesh,
                         {.strategy = parallel.strategy, .pins = parallel.pins, .pins_where = parallel.pins_where});
}

/// Bytes of all buffers of the fullest rank, scratch of kernels and messages not counted. The last block of a dim is
/// its largest, so the last rank is the fullest.
std::int64_t peak_memory(const Job& job, const plan::Plan& plan) {
  program::Program program = program::lower(job.graph, plan, program::Mode::train);
  program::run_passes(job.graph, program);
  const program::Workspaces none(program.instructions.size(), 0);
  return program::assign_memory(job.graph, program, tiling::ranks(plan.mesh) - 1, none).arena_bytes;
}

/// The run's plan first, then every named strategy's.
std::vector<plan::Compared> compare(const Job& job, plan::Plan first) {
  std::vector<plan::Compared> all = {{std::move(first), std::nullopt}};
  for (const std::string& strategy : plan::strategies())
    if (strategy != all[0].plan.strategy)
      all.push_back({plan::make_plan(job.graph, job.mesh, {.strategy = strategy}), std::nullopt});
  for (plan::Compared& compared : all) compared.peak_memory = peak_memory(job, compared.plan);
  return all;
}

void write_plan(const Job& job, const plan::Plan& plan, const std::string& path) {
  std::ofstream file(path);
  file << plan::plan_text(job.graph, plan);
  file.close();
  if (!file) fail("--plan-out: file to write, got {} expected a writable path. check the folder and its rights", path);
}

int read_ranks(const std::string& text) {
  constexpr int most = 1 << 20;
  int ranks = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (code != std::errc() || end != text.data() + text.size() || ranks < 1 || ranks > most)
    fail("--ranks: got \"{}\" expected a whole number from 1 to {}", text, most);
  return ranks;
}

void run(const CommandLine& line) {
  const Job job = read_job(line);
  program::check_passes(job.config.parallel.skip_passes);
  const auto begin = std::chrono::steady_clock::now();
  const plan::Plan plan = choose(job);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!line.plan_out.empty()) write_plan(job, plan, line.plan_out);
  if (line.common.json) {
    fmt::print("{}", plan::to_json(job.graph, {.batch = job.config.data.batch,
                                               .objective = job.config.parallel.objective,
                                               .planning_seconds = seconds,
                                               .plans = compare(job, plan)}));
    return;
  }
  const bool pinned = !job.config.parallel.pins.empty();
  fmt::print("{}{}", plan::report(job.graph, plan, pinned), frontend::shapes_note(job.graph));
  if (line.compare) fmt::print("\n{}", plan::comparison(compare(job, plan), pinned));
  if (!line.plan_out.empty()) fmt::print("\nwrote {}\n", line.plan_out);
}

int report(const std::string& message, ExitCode code) {
  fmt::print(stderr, "soybean_plan: {}\n", message);
  return static_cast<int>(code);
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Shows how the network of a model file would be tiled over N ranks, and the bytes a step moves."};
  CommandLine line;
  app::add_common(app, line.common);
  app.add_option("--ranks", line.ranks_text, "the number of ranks to plan for")->required()->type_name("N");
  app.add_flag("--compare", line.compare, "show all strategies side by side");
  app.add_option("--plan-out", line.plan_out, "write the plan to a file, for parallel.plan")->type_name("FILE");
  try {
    app.parse(argc, argv);
    app::finish(line.common);
    line.ranks = read_ranks(line.ranks_text);
    run(line);
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
    return static_cast<int>(ExitCode::done);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return report(app::explain(app, error, argc, argv), ExitCode::bad_input);
  } catch (const Error& error) {
    return report(error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return report("out of memory. plan for fewer ranks", ExitCode::failed);
  } catch (const std::system_error& error) { // of fmt::print, too
    return report(fmt::format("standard output: can not be written, got '{}' expected room for what is printed",
                              error.code().message()),
                  ExitCode::failed);
  } catch (const std::exception& error) {
    return report(fmt::format("internal error: {}", error.what()), ExitCode::failed);
  }
}
