#pragma once
// Compares text with a file of tests/golden. SOYBEAN_UPDATE_GOLDEN=1 in the environment writes the file instead: read
// the difference before committing it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace soybean::support {

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(SOYBEAN_SOURCE_DIR) + "/tests/golden/" + name;
  if (std::getenv("SOYBEAN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream in(path);
  std::stringstream expected;
  expected << in.rdbuf();
  ASSERT_TRUE(in.good() || in.eof()) << path << " is not there";
  EXPECT_EQ(text, expected.str()) << "differs from " << path;
}

} // namespace soybean::support
