// soybean_plan: shows how the network of a model file would be tiled over so many ranks, what that moves, and why.
// Needs no MPI and no devices. See --help and the README.
#include "app/command_line.hpp"
#include "app/folders.hpp"
#include "app/plan_job.hpp"
#include "base/error.hpp"
#include "config/table.hpp"
#include "explain/layers.hpp"
#include "explain/page.hpp"
#include "explain/sweep.hpp"
#include "explain/why.hpp"
#include "frontend/training.hpp"
#include "plan/diff.hpp"
#include "plan/plan_file.hpp"
#include "plan/report.hpp"
#include "simulate/report.hpp"

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
using app::Job;
using explain::Costed;

struct CommandLine {
  app::Common common;
  std::string ranks_text;
  int ranks = 0;
  bool compare = false;
  std::string plan_out;
  std::string why;
  std::vector<std::string> diff;
  std::string sweep;
  std::string report;
  bool weak = false, csv = false;
};

/// The run's plan, then every named strategy's.
std::vector<Costed> all_strategies(const Job& job, const Costed& first) {
  std::vector<Costed> all = {first};
  for (const std::string& strategy : plan::strategies())
    if (strategy != first.plan.strategy) all.push_back(cost(job.subject(), app::named_plan(job, first.plan, strategy)));
  return all;
}

void write_file(const std::string& option, const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) fail("{}: file to write, got {} expected a writable path. check the folder and its rights", option, path);
}

int read_ranks(const std::string& text) {
  constexpr int most = 1 << 20;
  int ranks = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (code != std::errc() || end != text.data() + text.size() || ranks < 1 || ranks > most)
    fail("--ranks: got \"{}\" expected a whole number from 1 to {}", text, most);
  return ranks;
}

struct Chosen {
  plan::Plan plan;
  double seconds; ///< that planning took
};

Chosen choose_timed(Job& job) {
  const auto begin = std::chrono::steady_clock::now();
  plan::Plan plan = app::choose(job);
  return {std::move(plan), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

void print_json(const Job& job, const std::vector<Costed>& plans, double seconds) {
  plan::JsonReport report{
      .batch = job.config.data.batch, .objective = job.config.parallel.objective, .planning_seconds = seconds};
  for (const Costed& costed : plans)
    report.plans.push_back({.plan = costed.plan,
                            .peak_memory = costed.peak_memory(),
                            .seconds = costed.step ? std::optional(costed.step->seconds) : std::nullopt});
  if (const explain::Subject subject = job.subject(); subject.setting != nullptr) {
    const simulate::Step& step = explain::predicted(plans[0].step);
    report.machine = subject.setting->machine.name;
    report.time = simulate::figures(step, job.config.data.batch);
    for (const Costed& other : plans)
      if (other.plan.strategy == "data")
        report.time.emplace_back("speedup_over_data", explain::predicted(other.step).seconds / step.seconds);
  }
  fmt::print("{}", plan::to_json(job.graph, report));
}

/// `layers`: with where the time goes in each.
void print_prediction(const Job& job, const machine::Setting& setting, const Costed& costed, bool layers) {
  const Costed data = cost(job.subject(), app::named_plan(job, costed.plan, "data"));
  const simulate::Step &step = explain::predicted(costed.step), &data_step = explain::predicted(data.step);
  const std::int64_t batch = job.config.data.batch, needed = costed.peak_memory(), there = setting.machine.memory;
  fmt::print("\n{}", layers ? simulate::report(setting, job.graph, batch, step, data_step)
                            : simulate::summary(setting, batch, step, data_step));
  fmt::print("  buffers of the fullest rank take {} of the machine's {}{}\n", plan::bytes_text(needed),
             plan::bytes_text(there), needed > there ? ": they do not fit" : "");
}

void print_difference(const CommandLine& line) {
  const std::string &a = line.diff[0], &b = line.diff[1];
  const std::string text_a = config::read_file(a), text_b = config::read_file(b);
  const tiling::Mesh mesh = plan::planned_mesh(text_a, a), other = plan::planned_mesh(text_b, b);
  if (mesh != other)
    fail("--diff: plans to compare, got meshes {} in {} and {} in {} expected the same one. plans for different ranks "
         "or "
         "orders of cuts have nothing in common",
         to_string(mesh), a, to_string(other), b);
  Job job = app::read_job(line.common, mesh, nullptr);
  app::prepare_for(job, text_a, a);
  const plan::Plan plan_a = plan::parse_plan(text_a, a, job.graph, mesh),
                   plan_b = plan::parse_plan(text_b, b, job.graph, mesh);
  fmt::print("{}", plan::difference(job.graph, {a, plan_a}, {b, plan_b}));
}

explain::SweepPoint sweep_point(Job job, int ranks) {
  const Chosen chosen = choose_timed(job);
  explain::SweepPoint point{.ranks = ranks,
                            .batch = job.config.data.batch,
                            .status = plan::status_text(chosen.plan),
                            .planning_seconds = chosen.seconds,
                            .plans = {}};
  const std::array<plan::Plan, 3> plans = {chosen.plan, app::named_plan(job, chosen.plan, "data"),
                                           app::named_plan(job, chosen.plan, "model")};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    point.plans[i] = {.strategy = plans[i].strategy, .bytes = plans[i].bytes, .step = {}};
    if (job.setting) point.plans[i].step = simulate::predict(*job.setting, job.graph, plans[i]);
  }
  return point;
}

/// A row for each rank count, printed as soon as it is known.
void sweep(const CommandLine& line, const machine::Machine* machine) {
  const std::vector<int> counts = explain::read_rank_counts(line.sweep);
  if (machine) static_cast<void>(machine::ranks_on_hosts(*machine, counts.back())); // refuses too many before any work
  std::optional<explain::SweepPoint> first;
  for (const int ranks : counts) {
    const Job job = app::read_job(line.common, ranks, machine, line.weak ? ranks : 1);
    const explain::SweepPoint point = sweep_point(job, ranks);
    if (!first) {
      first = point;
      if (line.csv)
        fmt::print("{}", explain::sweep_csv_head());
      else
        fmt::print("{}{}, the batch {}\n{}", job.graph.name, machine ? " on " + machine->name : ": moved per step",
                   line.weak ? "grows with the ranks" : "stays as it is", explain::sweep_head(point));
    }
    fmt::print("{}", line.csv ? explain::sweep_csv_row(point, *first) : explain::sweep_row(point, *first));
    std::fflush(stdout);
  }
}

/// Rank counts of the page's sweep: those asked for, or the powers of two up to the plan's ranks, at most 64; the
/// plan's alone where plan file, pins or mesh fit no others.
std::vector<int> page_counts(const CommandLine& line, const Job& job, const machine::Machine* machine) {
  constexpr int most = 64;
  const config::ParallelOptions& parallel = job.config.parallel;
  const bool fixed = !parallel.plan.empty() || !parallel.pins.empty() || !parallel.mesh.empty();
  if (line.sweep.empty() && fixed) return {line.ranks};
  const std::vector<int> counts =
      explain::read_rank_counts(line.sweep.empty() ? fmt::format("1..{}", std::min(most, line.ranks)) : line.sweep);
  if (machine) static_cast<void>(machine::ranks_on_hosts(*machine, counts.back())); // refuses too many
  return counts;
}

/// The point of a sweep that is known already.
explain::SweepPoint known_point(const Job& job, const std::vector<Costed>& plans, double planning_seconds) {
  explain::SweepPoint point{.ranks = tiling::ranks(job.mesh),
                            .batch = job.config.data.batch,
                            .status = plan::status_text(plans[0].plan),
                            .planning_seconds = planning_seconds,
                            .plans = {}};
  const auto set = [&](std::size_t i, const Costed& costed) {
    point.plans[i] = {.strategy = costed.plan.strategy, .bytes = costed.plan.bytes, .step = costed.step};
  };
  for (std::size_t i = 0; i < point.plans.size(); ++i) set(i, plans[0]); // named ones follow
  for (const Costed& costed : plans) {
    if (costed.plan.strategy == "data") set(1, costed);
    if (costed.plan.strategy == "model") set(2, costed);
  }
  return point;
}

void write_page(const CommandLine& line, const Job& job, const machine::Machine* machine,
                const std::vector<Costed>& plans, double planning_seconds) {
  const explain::Subject subject = job.subject();
  explain::PageContent content{.subject = subject,
                               .plans = plans,
                               .sweep = {},
                               .planning_seconds = planning_seconds,
                               .version = SOYBEAN_VERSION};
  for (const int ranks : page_counts(line, job, machine))
    content.sweep.push_back(
        ranks == line.ranks && !line.weak
            ? known_point(job, plans, planning_seconds)
            : sweep_point(app::read_job(line.common, ranks, machine, line.weak ? ranks : 1), ranks));
  write_file("--report", line.report, explain::page(content));
}

void plan_once(const CommandLine& line, const machine::Machine* machine) {
  Job job = app::read_job(line.common, line.ranks, machine);
  program::check_passes(job.config.parallel.skip_passes);
  if (!line.report.empty()) static_cast<void>(page_counts(line, job, machine)); // refuses before any work
  const int layer = line.why.empty() ? graph::none : explain::find_layer(job.graph, line.why);
  Chosen chosen = choose_timed(job);
  const explain::Subject subject = job.subject();
  if (!line.plan_out.empty()) write_file("--plan-out", line.plan_out, plan::plan_text(job.graph, chosen.plan));
  const Costed costed = cost(subject, std::move(chosen.plan));
  if (layer != graph::none) return fmt::print("{}", explain::why(subject, costed, layer, app::options_of(job)));
  if (line.common.json) return print_json(job, all_strategies(job, costed), chosen.seconds);
  fmt::print("{}{}",
             line.compare ? explain::layer_table(subject, costed)
                          : plan::report(job.graph, costed.plan, subject.pinned),
             frontend::shapes_note(job.graph));
  if (subject.setting) print_prediction(job, *subject.setting, costed, !line.compare);
  std::vector<Costed> plans;
  if (line.compare || !line.report.empty()) plans = all_strategies(job, costed);
  if (line.compare) fmt::print("\n{}", explain::strategy_table(subject, plans));
  if (!line.report.empty()) write_page(line, job, machine, plans, chosen.seconds);
  for (const std::string& file : {line.plan_out, line.report})
    if (!file.empty()) fmt::print("\nwrote {}\n", file);
}

/// Goes on as soybean_calibrate, with the same arguments: measuring takes MPI and devices, planning does not.
[[noreturn]] void become_calibrate(char** argv) {
  const std::string program = (app::program_folder() / "soybean_calibrate").string();
  execv(program.c_str(), argv);
  fail("--calibrate: program, got no {} expected it beside soybean_plan. install both", program);
}

/// An option that excludes others, and which of them is there.
void exclude(const char* option, std::initializer_list<std::pair<const char*, bool>> others) {
  for (const auto& [other, there] : others)
    if (there) fail("{}: got {} as well expected only one of them", option, other);
}

void check_options(CommandLine& line) {
  const bool differs = !line.diff.empty(), pages = !line.report.empty(), sweeps = !line.sweep.empty() && !pages;
  const std::pair<const char*, bool> ranks{"--ranks", !line.ranks_text.empty()}, compare{"--compare", line.compare},
      plan_out{"--plan-out", !line.plan_out.empty()}, json{"--json", line.common.json}, why{"--why", !line.why.empty()},
      report{"--report", pages};
  if (line.sweep.empty() && (line.weak || line.csv))
    fail("{}: got it expected --sweep with it. it is about many rank counts", line.weak ? "--weak" : "--csv");
  if (sweeps) exclude("--sweep", {ranks, compare, plan_out, json, why, {"--diff", differs}});
  if (differs)
    exclude("--diff", {ranks, compare, plan_out, json, why, report, {"--machine", !line.common.machine.empty()}});
  if (why.second) exclude("--why", {compare, plan_out, json, report});
  if (pages) exclude("--report", {json, {"--csv", line.csv}});
  if (sweeps || differs) return;
  if (line.ranks_text.empty())
    fail("command line: --ranks, got nothing expected the number of ranks to plan for. --help lists the options");
  line.ranks = read_ranks(line.ranks_text);
}

void run(CommandLine& line) {
  check_options(line);
  if (!line.diff.empty()) return print_difference(line);
  const std::optional<machine::Machine> machine = app::read_machine(line.common);
  if (!line.sweep.empty() && line.report.empty()) return sweep(line, machine ? &*machine : nullptr);
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
  app::add_common(app, line.common);
  app::add_machine(app, line.common, "predicts the time of a step");
  app.add_option("--ranks", line.ranks_text, "the number of ranks to plan for")->type_name("N");
  app.add_flag("--compare", line.compare, "say why each layer is split as it is, and show all strategies side by side");
  app.add_option("--why", line.why, "a layer's alternatives, what they would cost, and where its bytes go")
      ->type_name("LAYER");
  app.add_option("--plan-out", line.plan_out, "write the plan to a file, for parallel.plan")->type_name("FILE");
  app.add_option("--diff", line.diff, "what sets two plan files for the model apart; they say for how many ranks")
      ->expected(2)
      ->type_name("FILE");
  app.add_option("--sweep,--simulate", line.sweep,
                 "bytes, and with --machine step times, over rank counts: 1..1024 (doubling) or 1,2,6")
      ->type_name("LIST");
  app.add_option("--report", line.report,
                 "write a page (HTML) with all of it; with --sweep LIST for those rank counts beside --ranks")
      ->type_name("FILE");
  app.add_flag("--weak", line.weak, "with --sweep: the batch grows with the ranks");
  app.add_flag("--csv", line.csv, "with --sweep: comma-separated values instead of a table");
  bool calibrate = false; // anything but --help goes to soybean_calibrate before the options are looked at
  app.add_flag("--calibrate", calibrate,
               "measures this machine (under mpirun: its links, too) and writes a machine file, --calibrate OUT.toml; "
               "then no other option is taken but --threads and --precision");
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
