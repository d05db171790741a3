#pragma once
// The cases of the operator harness: small training graphs which together hold every operator of ops::table(), each in
// the variants that matter. All checks of this folder run over all of them.
#include "graph/graph.hpp"

#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

namespace soybean::ops_test {

/// Extents a case is built with.
struct Sizes {
  std::int64_t batch = 3, channels = 4, height = 5, width = 4, units = 6;
};

struct Case {
  std::string_view name;
  graph::Graph (*build)(DType, const Sizes&); ///< forward, backward and update
};

const std::vector<Case>& cases();

inline void PrintTo(const Case& c, std::ostream* out) { // for GoogleTest's messages
  *out << c.name;
}

/// Random sizes: 1, primes, odd and even numbers; images of at least 3 × 3.
Sizes random_sizes(std::uint64_t seed);

} // namespace soybean::ops_test
