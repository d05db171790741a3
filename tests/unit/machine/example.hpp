#pragma once
// A machine file in round numbers for the tests of what builds on machines: hosts of 4 ranks, on two boards of 2 each.
#include <string>

namespace soybean::machine {

inline std::string example_text() {
  return R"(name = "example"
ranks_per_host = 4
memory = 8e9
overlap = 0.5

[processor]
launch = 1e-6
memory_bandwidth = 1e9
cache = 1000
cache_bandwidth = 4e9

[processor.bandwidths]
max_pool_grad = 5e8

[processor.fp32]
peak = 1e12
products = 8e11
convolutions = 5e11
arithmetic = 1e11
half = 1e5

[processor.fp32.operators]
conv2d_grad_weight = 4e11

[[link]]
name = "board"
ranks = 2
latency = 1e-6
bandwidth = 8e9
per = "rank"

[[link]]
name = "host"
ranks = 4
latency = 2e-6
bandwidth = 4e9
per = "all"

[[link]]
name = "network"
latency = 1e-5
bandwidth = 1e9
per = "group"
)";
}

/// The text with one line of it, the first that begins with `key`, replaced (by nothing: left out).
inline std::string with(std::string text, const std::string& key, const std::string& line) {
  const std::size_t begin = text.find("\n" + key) + 1;
  return text.replace(begin, text.find('\n', begin) + (line.empty() ? 1 : 0) - begin, line);
}

} // namespace soybean::machine
