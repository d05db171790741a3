// soybean_train: trains the network of a model file on all ranks of the launch. See --help and the README.
#include "app/command_line.hpp"
#include "app/folders.hpp"
#include "comm/comm.hpp"
#include "comm/mpi_session.hpp"
#include "train/run.hpp"
#include "train/signals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace soybean;

struct CommandLine {
  app::Common common;
  train::RunRequest request;
  std::vector<std::string> resume; ///< "true": without a path
  std::vector<std::string> eval;   ///< "true": without a path
  std::vector<std::string> trace;  ///< "true": without a number of steps
};

void add_options(CLI::App& app, CommandLine& line) {
  app::add_common(app, line.common);
  app::add_machine(app, line.common, "for parallel.objective = \"time\"");
  app.add_flag(
      "--resume", line.resume,
      "go on from the latest checkpoint in run.dir, from the beginning if there is none; --resume=PATH: from that one, "
      "as a new run; both: from the latest, or while there is none from PATH");
  app.add_flag("--verify", line.request.verify, "hold the parallel run to the serial one instead of training");
  app.add_flag("--dry-run", line.request.dry_run, "check everything and print the plan, without training");
  app.add_flag("--eval", line.eval,
               "validate the latest checkpoint in run.dir, --eval=PATH: that one; instead of training");
  app.add_flag(
      "--trace", line.trace,
      "write a timeline of five steps, --trace=STEPS: of so many, from the second on, to trace.json in run.dir");
}

/// How many steps a timeline is asked for; 0: none is.
std::int64_t traced_steps(const CommandLine& line) {
  if (line.trace.empty()) return 0;
  if (line.request.verify || line.request.dry_run || !line.eval.empty())
    fail("--trace: got {} as well expected a training run", line.request.verify    ? "--verify"
                                                            : line.request.dry_run ? "--dry-run"
                                                                                   : "--eval");
  constexpr std::int64_t usual = 5, most = 1000;
  const std::string& text = line.trace.back();
  if (text == "true") return usual;
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (error != std::errc() || end != text.data() + text.size() || steps < 1 || steps > most)
    fail("--trace: got {} expected a number of steps from 1 to {}", text, most);
  return steps;
}

/// Reports a failure once and gives the exit code. What only this rank ran into must end the others; several such ranks
/// report one after the other, and the first report ends the run. The code stays where nothing can be said.
int report(const comm::MpiSession& mpi, const std::string& message, ExitCode code, bool on_all_ranks) {
  if (on_all_ranks || mpi.size() == 1) {
    if (mpi.rank() == 0) std::fprintf(stderr, "soybean_train: %s\n", message.c_str());
    return static_cast<int>(code);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(std::min(2000, 40 * mpi.rank())));
  std::fprintf(stderr, "soybean_train: rank %d: %s\n", mpi.rank(), message.c_str());
  std::fflush(nullptr);
  comm::MpiSession::abort(static_cast<int>(code));
}

int run(int argc, char** argv, const comm::MpiSession& mpi) {
  CLI::App app{"Trains the network of a model file on all ranks of the launch (mpirun -n N soybean_train MODEL.toml)."};
  CommandLine line;
  add_options(app, line);
  const std::vector<std::string_view> arguments(argv, argv + argc);
  try {
    for (const std::string_view argument : arguments)
      for (const std::string_view option : {"--resume", "--eval"})
        if (argument == std::string(option) + "=")
          fail("{0}=: got no path expected that of a checkpoint, or {0} alone", option);
    app.parse(argc, argv);
    app::finish(line.common);
    line.request.traced = traced_steps(line);
    if (line.request.verify && (line.request.dry_run || line.common.json || !line.resume.empty()))
      fail("--verify: got {} as well expected it alone. it trains nothing and prints a table",
           line.request.dry_run ? "--dry-run"
           : line.common.json   ? "--json"
                                : "--resume");
    if (line.request.dry_run && !line.resume.empty()) fail("--dry-run: got --resume as well expected only one of them");
    if (!line.eval.empty() && (line.request.verify || line.request.dry_run || !line.resume.empty()))
      fail("--eval: got {} as well expected only one of them", line.request.verify    ? "--verify"
                                                               : line.request.dry_run ? "--dry-run"
                                                                                      : "--resume");
    if (line.eval.size() > 1) fail("--eval: got it {} times expected it once", line.eval.size());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      if (mpi.rank() == 0) app.exit(error);
      return 0;
    }
    return report(mpi, app::explain(app, error, argc, argv), ExitCode::bad_input, true);
  } catch (const Error& error) {
    return report(mpi, error.what(), error.code(), true);
  }
  if (!line.eval.empty()) line.request.eval = line.eval[0] == "true" ? std::string() : line.eval[0];
  if (line.request.verify || line.request.dry_run || line.request.eval) train::obey_stop_signals();
  line.request.job = {line.common.model, line.common.overrides, app::machine_folders()};
  line.request.json = line.common.json;
  for (const std::string& value : line.resume) {
    const bool latest = value == "true";
    if (!latest) line.request.begin_from = value;
    line.request.resume = latest || line.request.resume == "" ? std::string() : value;
  }
  return static_cast<int>(train::run(line.request));
}

} // namespace

int main(int argc, char** argv) {
  train::note_stop_signals();
  comm::MpiSession mpi(&argc, &argv);
  try {
    return run(argc, argv, mpi);
  } catch (const Error& error) {
    return report(mpi, error.what(), error.code(), error.on_all_ranks());
  } catch (const std::bad_alloc&) {
    return report(mpi, "out of memory. use more ranks or a smaller batch", ExitCode::failed, false);
  } catch (const std::exception& error) {
    return report(mpi, fmt::format("internal error: {}", error.what()), ExitCode::failed, false);
  }
}
