#pragma once
// What the two programs share: options, and what is said of a command line that can not be understood.
#include "base/error.hpp"
#include "config/table.hpp"
#include "config/value.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::app {

/// Options of both programs.
struct Common {
  std::string model;
  std::vector<std::string> overrides; ///< --set a.b=value, then --strategy
  std::string strategy;
  std::string machine;
  bool json = false;
};

inline void add_common(CLI::App& app, Common& common) {
  app.add_option("model", common.model, "a model file (TOML)")->required();
  app.add_option("--set", common.overrides, "override a key: --set train.steps=100 (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("--strategy", common.strategy, "auto, data, model, owt or kcut (default: the model file's, else auto)")
      ->type_name("NAME");
  app.add_flag("--json", common.json, "print one JSON object instead of text: see the README");
  app.footer("All keys of a model file are described in src/config/README.md, those of layers in "
             "src/frontend/README.md.");
  app.set_version_flag("--version", std::string("soybean ") + SOYBEAN_VERSION);
}

/// `meaning`: what the program does with --machine.
inline void add_machine(CLI::App& app, Common& common, const std::string& meaning) {
  app.add_option("--machine", common.machine, "a machine file, or the name of one in inputs/machines: " + meaning)
      ->type_name("FILE");
}

/// Turns --strategy and --machine into overrides.
inline void finish(Common& common) {
  if (!common.machine.empty()) common.overrides.push_back("machine.file=" + config::quote(common.machine));
  if (!common.strategy.empty()) common.overrides.push_back("parallel.strategy=" + config::quote(common.strategy));
}

/// An argument that nothing takes. `options`: those of the program.
inline std::string explain_extra(const std::string& argument, const std::vector<std::string>& options,
                                 const std::vector<std::string>& arguments) {
  const std::string name = argument.substr(0, argument.find('='));
  const std::size_t begin = name.find_first_not_of('-');
  if (begin != 0 && begin != std::string::npos) {
    const std::string meant = config::nearest(name.substr(begin), options);
    return fmt::format("command line: option, got \"{}\" expected a known one. {}", name,
                       meant.empty() ? fmt::format("known are --{}", fmt::join(options, ", --"))
                                     : fmt::format("did you mean --{}?", meant));
  }
  std::string hint = "--help lists the options";
  if (name != argument) hint = fmt::format("did you mean --set {}?", argument);
  for (const char* option : {"--resume", "--eval"})
    if (std::find(arguments.begin(), arguments.end(), option) != arguments.end())
      hint = fmt::format("a checkpoint is named as {}=PATH", option);
  return fmt::format("command line: argument, got \"{}\" expected no more than one model file. {}", argument, hint);
}

/// What is wrong with a command line, for CLI11's error.
inline std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
  const std::vector<std::string> arguments(argv, argv + argc), extras = app.remaining();
  const std::string_view said = error.what();
  std::vector<std::string> names;
  const CLI::Option *missing = nullptr, *named = nullptr; // that must be there and is not; that the error is about
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
    if (option->get_required() && option->count() == 0 && !missing) missing = option;
    if (said.find(option->get_name()) != std::string_view::npos &&
        (!named || named->get_name().size() < option->get_name().size()))
      named = option;
  }
  for (const std::string& extra : extras)
    if (extra.front() == '-') return explain_extra(extra, names, arguments); // likely the cause of all else
  const bool mismatch = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch);
  if (mismatch && named && named->get_expected_min() > 1)
    return fmt::format("{}: got {} expected {}, {} of them", named->get_name(), named->count(), named->get_type_name(),
                       named->get_expected_min());
  if (mismatch && named && named->count() > 1)
    return fmt::format("{}: got it {} times expected it once", named->get_name(), named->count());
  if (mismatch && named) return fmt::format("{}: got nothing expected {}", named->get_name(), named->get_type_name());
  if (missing)
    return fmt::format("command line: {}, got nothing expected {}. --help lists the options", missing->get_name(),
                       missing->get_description());
  if (!extras.empty()) return explain_extra(extras.front(), names, arguments);
  if (named) return fmt::format("{}: got a value expected none. it is there or not", named->get_name());
  return fmt::format("command line: got '{}' expected what --help lists", said);
}

} // namespace soybean::app
