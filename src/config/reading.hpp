#pragma once
// What reading the sections of a model file has in common: ranges, paths, keys that exclude each other, keys that only
// some values of another key understand. Private to src/config.
#include "config/table.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::config {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr Limits from_zero{.low = 0};
constexpr Limits from_one{.low = 1};

/// The path a key holds, "" without one. In a model file it is relative to the file, from the command line to the
/// working directory.
std::string input_path(const Table& table, std::string_view key);
/// The same of a list of paths.
std::vector<std::string> input_paths(const Table& table, std::string_view key);

/// Bytes: a whole number of them, or a string with a unit, "80 GB" (powers of 1000) or "80 GiB" (of 1024). At least 1.
std::int64_t byte_size(const Table& table, std::string_view key, std::int64_t fallback);

double real_at_least(const Table& table, std::string_view key, double fallback, double low);
double positive(const Table& table, std::string_view key, double fallback);

/// Of two keys that exclude each other the one that holds, "" where neither is there: --set above the file, the later
/// --set above the earlier. Throws Error when both have the same right.
std::string_view one_of(const Table& table, std::string_view a, std::string_view b);

/// A word that other keys depend on, and the keys that only it (or only some of these words) understands.
struct Variant {
  std::string word;
  std::vector<std::string> keys;
};
using Variants = std::vector<Variant>;

std::vector<std::string> words_of(const Variants& variants);

/// Refuses keys that belong to words other than the chosen one, the value of `selector`. Those of the file do not count
/// where --set has chosen.
void refuse_keys_of_others(const Table& table, std::string_view selector, const std::string& chosen,
                           const Variants& variants);

} // namespace soybean::config
