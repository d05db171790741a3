// soybean_plan: shows how the network of a model file would be tiled over so many ranks, and what that moves. Needs no
// MPI and no devices. See --help and the README.
#include "app/command_line.hpp"
#include "base/error.hpp"
#include "config/options.hpp"
#include "config/table.hpp"
#include "frontend/training.hpp"
#include "machine/machine.hpp"
#include "machine/time.hpp"
#include "plan/plan_file.hpp"
#include "plan/planner.hpp"
#include "plan/report.hpp"
#include "program/memory.hpp"
#include "program/program.hpp"
#include "simulate/report.hpp"
#include "simulate/step.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <string_view>

namespace {

using namespace soybean;

struct CommandLine {
  app::Common common;
  std::string ranks_text;
  int ranks = 0;
  bool compare = false;
  std::string plan_out;
  std::string simulate;
  bool weak = false, csv = false;
};

struct Job {
  config::RunConfig config;
  graph::Graph graph;
  tiling::Mesh mesh;
};

/// `times`: how many times the model file's batch. Ranks lie on the machine's hosts, if there is one.
Job read_job(const CommandLine& line, int ranks, const machine::Machine* machine, std::int64_t times = 1) {
  config::Table root = config::Table::parse(config::read_file(line.common.model), line.common.model);
  for (const std::string& assignment : line.common.overrides) root.apply_override(assignment);
  if (times > 1) root.apply_override(fmt::format("data.batch={}", times * config::read_run_config(root).data.batch));
  Job job;
  job.config = config::read_run_config(root);
  job.graph = frontend::build_training_graph(root, job.config);
  root.report_unread();
  const std::vector<std::int64_t>& cuts = job.config.parallel.mesh;
  const std::vector<int> hosts = machine ? machine::ranks_on_hosts(*machine, ranks) : std::vector<int>{ranks};
  job.mesh = cuts.empty() ? tiling::make_mesh(hosts) : tiling::make_mesh(cuts, ranks);
  return job;
}

machine::Setting setting_of(const machine::Machine& machine, const Job& job) {
  const config::TrainOptions& train = job.config.train;
  return machine::make_setting(machine, job.mesh, machine::precision_of(train.precision, train.tf32));
}

/// The folder of the program that runs.
std::filesystem::path here() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

/// Where machine files lie: in the installation this program is part of, or in the sources it was built from.
std::vector<std::string> machine_folders() {
  std::vector<std::string> folders;
  for (const char* inputs : {SOYBEAN_INSTALLED_INPUTS, "../../inputs"})
    folders.push_back((here() / inputs / "machines").lexically_normal().string());
  return folders;
}

/// The plan a run would take.
plan::Plan choose(const Job& job) {
  const config::ParallelOptions& parallel = job.config.parallel;
  if (!parallel.plan.empty())
    return plan::parse_plan(config::read_file(parallel.plan), parallel.plan, job.graph, job.mesh);
  return plan::make_plan(job.graph, job.mesh,
                         {.strategy = parallel.strategy, .pins = parallel.pins, .pins_where = parallel.pins_where});
}

plan::Plan data_plan(const Job& job, const plan::Plan& chosen) {
  return chosen.strategy == "data" ? chosen : plan::make_plan(job.graph, job.mesh, {.strategy = "data"});
}

/// Bytes of all buffers of the fullest rank, scratch of kernels and messages not counted. The last block of a dim is
/// its largest, so the last rank is the fullest.
std::int64_t peak_memory(const Job& job, const program::Program& program) {
  const program::Workspaces none(program.instructions.size(), 0);
  return program::assign_memory(job.graph, program, tiling::ranks(program.mesh) - 1, none).arena_bytes;
}

program::Program program_of(const Job& job, const plan::Plan& plan) {
  program::Program program = program::lower(job.graph, plan, program::Mode::train);
  program::run_passes(job.graph, program);
  return program;
}

/// The run's plan first, then every named strategy's.
std::vector<plan::Compared> compare(const Job& job, plan::Plan first, const machine::Setting* setting) {
  std::vector<plan::Compared> all = {{std::move(first), std::nullopt}};
  for (const std::string& strategy : plan::strategies())
    if (strategy != all[0].plan.strategy)
      all.push_back({plan::make_plan(job.graph, job.mesh, {.strategy = strategy}), std::nullopt});
  for (plan::Compared& compared : all) {
    const program::Program program = program_of(job, compared.plan);
    compared.peak_memory = peak_memory(job, program);
    if (setting) compared.seconds = simulate::predict(*setting, job.graph, compared.plan, program).seconds;
  }
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

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void print_json(const Job& job, const plan::Plan& plan, double seconds, const machine::Setting* setting) {
  plan::JsonReport report{.batch = job.config.data.batch,
                          .objective = job.config.parallel.objective,
                          .planning_seconds = seconds,
                          .plans = compare(job, plan, setting)};
  if (setting) {
    const simulate::Step step = simulate::predict(*setting, job.graph, plan, program_of(job, plan));
    report.machine = setting->machine.name;
    report.time = simulate::figures(step, job.config.data.batch);
    for (const plan::Compared& other : report.plans)
      if (other.plan.strategy == "data" && other.seconds)
        report.time.emplace_back("speedup_over_data", *other.seconds / step.seconds);
  }
  fmt::print("{}", plan::to_json(job.graph, report));
}

void print_prediction(const Job& job, const plan::Plan& plan, const machine::Setting& setting) {
  const plan::Plan data = data_plan(job, plan);
  const program::Program program = program_of(job, plan);
  fmt::print("\n{}", simulate::report(setting, job.graph, job.config.data.batch,
                                      simulate::predict(setting, job.graph, plan, program),
                                      simulate::predict(setting, job.graph, data, program_of(job, data))));
  const std::int64_t needed = peak_memory(job, program), there = setting.machine.memory;
  fmt::print("  buffers of the fullest rank take {} of the machine's {}{}\n", plan::bytes_text(needed),
             plan::bytes_text(there), needed > there ? ": they do not fit" : "");
}

void plan_once(const CommandLine& line, const machine::Machine* machine) {
  const Job job = read_job(line, line.ranks, machine);
  program::check_passes(job.config.parallel.skip_passes);
  std::optional<machine::Setting> setting;
  if (machine) setting = setting_of(*machine, job);
  const auto begin = std::chrono::steady_clock::now();
  const plan::Plan plan = choose(job);
  const double seconds = seconds_since(begin);
  if (!line.plan_out.empty()) write_plan(job, plan, line.plan_out);
  if (line.common.json) return print_json(job, plan, seconds, setting ? &*setting : nullptr);
  const bool pinned = !job.config.parallel.pins.empty();
  fmt::print("{}{}", plan::report(job.graph, plan, pinned), frontend::shapes_note(job.graph));
  if (setting) print_prediction(job, plan, *setting);
  if (line.compare) fmt::print("\n{}", plan::comparison(compare(job, plan, setting ? &*setting : nullptr), pinned));
  if (!line.plan_out.empty()) fmt::print("\nwrote {}\n", line.plan_out);
}

/// A row for each rank count, printed as soon as it is known.
void simulate_counts(const CommandLine& line, const machine::Machine& machine) {
  const std::vector<int> counts = simulate::read_rank_counts(line.simulate);
  static_cast<void>(machine::ranks_on_hosts(machine, counts.back())); // refuses too many before any work
  std::optional<simulate::Point> first;
  for (const int ranks : counts) {
    const Job job = read_job(line, ranks, &machine, line.weak ? ranks : 1);
    const machine::Setting setting = setting_of(machine, job);
    const auto begin = std::chrono::steady_clock::now();
    const plan::Plan plan = choose(job);
    const double seconds = seconds_since(begin);
    const plan::Plan data = data_plan(job, plan);
    const simulate::Point point{.ranks = ranks,
                                .batch = job.config.data.batch,
                                .strategy = plan.strategy,
                                .planning_seconds = seconds,
                                .step = simulate::predict(setting, job.graph, plan, program_of(job, plan)),
                                .data = simulate::predict(setting, job.graph, data, program_of(job, data)),
                                .bytes = plan.bytes,
                                .data_bytes = data.bytes};
    if (!first) {
      first = point;
      if (line.csv)
        fmt::print("{}", simulate::csv_head());
      else
        fmt::print("{} on {}, the batch {}\n{}", job.graph.name, machine.name,
                   line.weak ? "grows with the ranks" : "stays as it is", simulate::table_head(plan.strategy));
    }
    fmt::print("{}", line.csv ? simulate::csv_row(point, *first) : simulate::table_row(point, *first));
    std::fflush(stdout);
  }
}

/// Goes on as soybean_calibrate, with the same arguments: measuring takes MPI and devices, planning does not.
[[noreturn]] void become_calibrate(char** argv) {
  const std::string program = (here() / "soybean_calibrate").string();
  execv(program.c_str(), argv);
  fail("--calibrate: program, got no {} expected it beside soybean_plan. install both", program);
}

void check_options(CommandLine& line) {
  if (line.simulate.empty()) {
    if (line.weak || line.csv)
      fail("{}: got it expected --simulate with it. it is about predictions over rank counts",
           line.weak ? "--weak" : "--csv");
    if (line.ranks_text.empty())
      fail("command line: --ranks, got nothing expected the number of ranks to plan for. --help lists the options");
    line.ranks = read_ranks(line.ranks_text);
    return;
  }
  const char* other = !line.ranks_text.empty() ? "--ranks"
                      : line.compare           ? "--compare"
                      : !line.plan_out.empty() ? "--plan-out"
                      : line.common.json       ? "--json"
                                               : nullptr;
  if (other) fail("--simulate: got {} as well expected only one of them", other);
  if (line.common.machine.empty())
    fail("--simulate: got no machine expected --machine with it. step times depend on it");
}

void run(CommandLine& line) {
  check_options(line);
  std::optional<machine::Machine> machine;
  if (!line.common.machine.empty()) machine = machine::find_machine(line.common.machine, machine_folders());
  if (machine && !line.simulate.empty()) // --simulate never comes without
    simulate_counts(line, *machine);
  else
    plan_once(line, machine ? &*machine : nullptr);
}

/// Says it and gives the exit code, which stays where nothing can be said (fmt would throw).
int report(const std::string& message, ExitCode code) noexcept {
  std::fprintf(stderr, "soybean_plan: %s\n", message.c_str());
  return static_cast<int>(code);
}

int obey(int argc, char** argv) {
  CLI::App app{"Shows how the network of a model file would be tiled over N ranks, and the bytes a step moves."};
  CommandLine line;
  app::add_common(app, line.common,
                  "a machine file, or the name of one in inputs/machines: predicts the time of a step");
  app.add_option("--ranks", line.ranks_text, "the number of ranks to plan for")->type_name("N");
  app.add_flag("--compare", line.compare, "show all strategies side by side");
  app.add_option("--plan-out", line.plan_out, "write the plan to a file, for parallel.plan")->type_name("FILE");
  app.add_option("--simulate", line.simulate,
                 "with --machine: step times over rank counts, 1..4096 (doubling) or 1,2,6")
      ->type_name("LIST");
  app.add_flag("--weak", line.weak, "with --simulate: the batch grows with the ranks");
  bool calibrate = false; // anything but --help goes to soybean_calibrate before the options are looked at
  app.add_flag("--calibrate", calibrate,
               "measures this machine (under mpirun: its links, too) and writes a machine file, --calibrate OUT.toml; "
               "then no other option is taken but --threads and --precision");
  app.add_flag("--csv", line.csv, "with --simulate: comma-separated values instead of a table");
  try {
    for (int i = 1; i < argc; ++i)
      if (const std::string_view argument = argv[i]; argument == "--calibrate" || argument.starts_with("--calibrate="))
        become_calibrate(argv);
    app.parse(argc, argv);
    app::finish(line.common);
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

} // namespace

int main(int argc, char** argv) {
  try {
    return obey(argc, argv);
  } catch (...) { // there was no room for a report either
    std::fputs("soybean_plan: out of memory. plan for fewer ranks\n", stderr);
    return static_cast<int>(ExitCode::failed);
  }
}
