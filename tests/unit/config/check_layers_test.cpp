// scripts/check_layers on a made-up tree with one fault of each kind.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;

struct Tree {
  fs::path root = fs::temp_directory_path() / ("soybean_check_layers_" + std::to_string(::getpid()));
  Tree() { fs::remove_all(root); }
  ~Tree() { fs::remove_all(root); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
};

/// Its output, and its exit code on a last line.
std::string check(const Tree& tree) {
  const std::string command = std::string(SOYBEAN_SOURCE_DIR) + "/scripts/check_layers --root " + tree.root.string();
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  return output + "exit " + std::to_string(WEXITSTATUS(pclose(pipe)));
}

TEST(CheckLayers, AcceptsWhatTheTableAllows) {
  const Tree tree;
  tree.write("src/base/a.hpp", "#include <vector>\n");
  tree.write("src/config/b.cpp", "#include \"base/a.hpp\"\n#include <toml++/toml.h>\n");
  EXPECT_EQ(check(tree), "exit 0");
}

TEST(CheckLayers, NamesFileLineAndInclude) {
  const Tree tree;
  tree.write("src/base/a.hpp", "#pragma once\n#include \"config/b.hpp\"\n#include <mpi.h>\n#include \"near.hpp\"\n");
  tree.write("src/config/b.hpp", "#include <base/a.hpp>\n#include \"base/gone.hpp\"\n");
  tree.write("src/odd/c.hpp", "");
  EXPECT_EQ(check(tree), "src/base/a.hpp:2: includes config/b.hpp, but base may include only: base\n"
                         "src/base/a.hpp:3: includes mpi.h, which is for device kernels comm io runtime only\n"
                         "src/base/a.hpp:4: includes \"near.hpp\", write headers of ours as \"folder/name.hpp\"\n"
                         "src/config/b.hpp:1: includes <base/a.hpp>, write it in quotes\n"
                         "src/config/b.hpp:2: includes base/gone.hpp, which does not exist\n"
                         "src/odd: folder, got no row in scripts/check_layers expected one\n"
                         "exit 1");
}

} // namespace
