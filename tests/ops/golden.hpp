#pragma once
// What PyTorch computed, kept in tests/golden beside the scripts that wrote it.
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace soybean::ops_test {

inline nlohmann::json read_golden(const std::string& file) {
  std::ifstream in(std::string(SOYBEAN_SOURCE_DIR) + "/tests/golden/" + file);
  return nlohmann::json::parse(in);
}

} // namespace soybean::ops_test
