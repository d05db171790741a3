#pragma once
// What the two programs share: options, and how a failure is reported.
#include "base/error.hpp"

#include <CLI/CLI.hpp>

#include <string>
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
  app.add_option("model", common.model, "model file (TOML)")->required();
  app.add_option("--set", common.overrides, "override a key: --set train.steps=100 (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("--strategy", common.strategy, "auto, data, model, owt or kcut (default: the model file's, else auto)")
      ->type_name("NAME");
  app.add_option("--machine", common.machine, "machine file (not supported yet)")->type_name("FILE");
  app.add_flag("--json", common.json, "print one JSON object instead of text: see the README");
  app.footer("All keys of a model file are described in src/config/README.md, those of layers in "
             "src/frontend/README.md.");
  app.set_version_flag("--version", std::string("soybean ") + SOYBEAN_VERSION);
}

/// Turns --strategy into an override and refuses what is not built yet.
inline void finish(Common& common) {
  if (!common.machine.empty()) fail("--machine: machine files are not supported yet. leave it out");
  if (!common.strategy.empty()) common.overrides.push_back("parallel.strategy=\"" + common.strategy + "\"");
}

} // namespace soybean::app
