#include "config/reading.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

namespace soybean::config {

namespace {

std::string resolved_path(const Table& table, std::string_view key, const std::filesystem::path& path) {
  if (path.empty() || path.is_absolute() || table.overridden(key)) return path.string();
  return (std::filesystem::path(table.file()).parent_path() / path).lexically_normal().string();
}

} // namespace

std::string input_path(const Table& table, std::string_view key) {
  return resolved_path(table, key, table.text(key, ""));
}

std::vector<std::string> input_paths(const Table& table, std::string_view key) {
  std::vector<std::string> paths = table.texts(key, std::vector<std::string>());
  for (std::string& path : paths) {
    if (path.empty() || path.find('\0') != std::string::npos) table.reject(key, "paths of files");
    path = resolved_path(table, key, path);
  }
  return paths;
}

std::int64_t byte_size(const Table& table, std::string_view key, std::int64_t fallback) {
  if (!table.has(key)) return fallback;
  const auto refuse = [&] {
    table.reject(key, "a size from 1 B to 1024 PiB",
                 "such as \"80 GB\", \"512 MiB\" (kB to TB, KiB to TiB) or a number of bytes");
  };
  double number = 0;
  std::string unit = "B";
  if (table.is_text(key)) {
    const std::string text = table.text(key, required);
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    unit = text.substr(static_cast<std::size_t>(end - text.data()));
    unit.erase(0, unit.find_first_not_of(' '));
    if (code != std::errc() || unit.empty()) refuse();
  } else {
    number = table.real(key, required);
  }
  static const std::map<std::string_view, double> sizes = {{"B", 1},        {"kB", 1e3},     {"MB", 1e6},
                                                           {"GB", 1e9},     {"TB", 1e12},    {"KiB", 0x1p10},
                                                           {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  const auto size = sizes.find(unit);
  constexpr double most = 0x1p60;
  if (size == sizes.end() || !(number * size->second >= 1 && number * size->second <= most)) refuse();
  return static_cast<std::int64_t>(number * size->second);
}

double real_at_least(const Table& table, std::string_view key, double fallback, double low) {
  const double value = table.real(key, fallback);
  if (value < low) table.reject(key, fmt::format("at least {}", low));
  return value;
}

double positive(const Table& table, std::string_view key, double fallback) {
  const double value = table.real(key, fallback);
  if (value <= 0) table.reject(key, "a number above 0");
  return value;
}

std::string_view one_of(const Table& table, std::string_view a, std::string_view b) {
  const bool has_a = table.has(a), has_b = table.has(b);
  if (!has_a || !has_b) return has_a ? a : has_b ? b : "";
  if (table.overridden(a) == table.overridden(b))
    table.reject(b, fmt::format("either {} or {}", a, b), "remove one of them");
  const bool first = table.overridden(a) > table.overridden(b);
  table.pass_over(first ? b : a);
  return first ? a : b;
}

std::vector<std::string> words_of(const Variants& variants) {
  std::vector<std::string> words;
  for (const Variant& variant : variants) words.push_back(variant.word);
  return words;
}

void refuse_keys_of_others(const Table& table, std::string_view selector, const std::string& chosen,
                           const Variants& variants) {
  const auto has = [](const Variant& variant, const std::string& key) {
    return std::find(variant.keys.begin(), variant.keys.end(), key) != variant.keys.end();
  };
  const auto own = std::find_if(variants.begin(), variants.end(), [&](const Variant& v) { return v.word == chosen; });
  for (const Variant& other : variants)
    for (const std::string& key : other.keys) {
      if (has(*own, key) || !table.has(key)) continue;
      if (table.overridden(selector) && !table.overridden(key)) {
        table.pass_over(key);
        continue;
      }
      std::vector<std::string> users;
      for (const Variant& variant : variants)
        if (has(variant, key)) users.push_back(fmt::format("\"{}\"", variant.word));
      table.reject(key, fmt::format("no such key with {} = \"{}\"", table.path(selector), chosen),
                   fmt::format("set {} = {}, or leave it out", table.path(selector), fmt::join(users, " or ")));
    }
}

} // namespace soybean::config
