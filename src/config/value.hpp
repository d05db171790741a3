#pragma once
// The tree behind a `Table`: a parsed TOML document in the order it was written, each value knowing where it came from
// and what was asked of it. Private to src/config; only parse.cpp knows toml++.
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::config {

enum class Kind : std::uint8_t { integer, real, boolean, text, date, array, table };

struct Entry;

struct Value {
  Kind kind = Kind::table;
  std::int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::string text;               ///< text; date: as written
  std::vector<Value> items;       ///< array
  std::vector<Entry> entries;     ///< table, in the order of the file
  std::string where;              ///< "model.toml:7" or "--set train.steps=100"
  int overridden = 0;             ///< set by the n-th --set; 0: as in the file
  bool read = false;              ///< some getter took it
  std::vector<std::string> asked; ///< table: keys getters asked for, in the order of first request
};

struct Entry {
  std::string key;
  Value value;
};

/// A document and the empty tables handed out for sections it lacks. Tables point into it.
struct Document {
  Value root;
  std::deque<Value> absent;
  std::string file;
  int overrides = 0; ///< so many --set were applied
};

Value* find(Value& table, std::string_view key); ///< nullptr when absent

/// Parses TOML text; lines are reported as "<file>:<line>". Throws a one-line Error for syntax errors, duplicate keys
/// and values nested more than 256 deep.
Value parse_document(const std::string& text, const std::string& file);

/// Parses the right side of an override. What is not TOML but looks like a word (no quote, bracket or brace in front)
/// is a string. `where` is reported for it. Throws Error when there is no value or a quoted or bracketed one is broken.
Value parse_override_value(const std::string& text, const std::string& where);

/// A value as TOML on one line; reals keep a point or exponent and all their digits.
std::string to_inline_toml(const Value& value);
/// A table as TOML sections, arrays of tables one element per line; `path` is its own full key ("" for the root).
std::string to_toml_sections(const Value& table, const std::string& path);
/// A key as it must be written: bare, or quoted where needed.
std::string key_text(const std::string& key);
/// `"many" (string)`: for messages; one line, at most about 60 characters.
std::string describe(const Value& value);
/// `text` quoted for TOML and messages, control characters escaped.
std::string quote(std::string_view text);

} // namespace soybean::config
