#include "config/options.hpp"
#include "config/value.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

namespace {

using namespace soybean;

/// The keys of a table that hold values, by their full path; pins are the user's own names.
void collect(const config::Value& table, const std::string& path, std::set<std::string>& keys) {
  for (const config::Entry& entry : table.entries) {
    const std::string below = path.empty() ? entry.key : path + "." + entry.key;
    if (below == "model") continue;
    if (entry.value.kind == config::Kind::table && below != "parallel.pins")
      collect(entry.value, below, keys);
    else
      keys.insert(below);
  }
}

std::set<std::string> resolved_keys(const std::string& data, const std::string& rest) {
  const config::Table root = config::Table::parse("[data]\nbatch = 1\n" + data + "[train]\n" + rest, "m.toml");
  const std::string text = config::resolved_toml(config::read_run_config(root), root);
  std::set<std::string> keys;
  collect(config::parse_document(text, "config.toml"), "", keys);
  return keys;
}

TEST(ConfigReadme, DescribesEveryKeyOfTheResolvedConfigurationAndNoOther) {
  std::set<std::string> resolved;
  resolved.merge(
      resolved_keys("source = \"synthetic\"\n", "steps = 1\nschedule = { name = \"step\", step_steps = 1 }\n"));
  resolved.merge(resolved_keys("source = \"cifar\"\npath = \"d\"\n", "steps = 1\n"));
  resolved.merge(resolved_keys("source = \"image_folder\"\npath = \"d\"\n", "steps = 1\n"));
  resolved.merge(resolved_keys("source = \"tokens\"\npath = \"d\"\n", "steps = 1\n"));
  resolved.merge(resolved_keys("source = \"tokens\"\npath = \"d\"\nvalidation_path = \"v\"\n", "steps = 1\n"));
  resolved.merge(resolved_keys("source = \"hdf5\"\npath = \"d.h5\"\n",
                               "epochs = 1\nschedule = { name = \"step\", step_epochs = 1 "
                               "}\n[parallel]\nplan = \"p\"\nmemory = 1000\n[machine]\nfile = \"m\"\n"));
  const std::string synthetic = "source = \"synthetic\"\n";
  for (const char* optimizer : {"adam", "adamw", "rmsprop", "lars", "lamb"})
    resolved.merge(resolved_keys(synthetic, fmt::format("steps = 1\noptimizer.name = \"{}\"\n", optimizer)));
  for (const char* schedule :
       {"name = \"multi_step\", milestone_epochs = [1]", "name = \"multi_step\", milestone_steps = [1]",
        "name = \"exponential\", gamma = 0.9", "name = \"cosine\", warmup_epochs = 1", "name = \"polynomial\""})
    resolved.merge(
        resolved_keys(synthetic, fmt::format("steps = 1\ninit_from = \"x.h5\"\nschedule = {{ {} }}\n", schedule)));
  const std::string text = config::read_file(std::string(SOYBEAN_SOURCE_DIR) + "/src/config/README.md");
  std::set<std::string> described;
  const std::regex row("\n\\| `([a-z_.]+)` \\|");
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) described.insert((*it)[1]);
  EXPECT_EQ(described, resolved);
}

} // namespace
