// The one place that knows toml++.
#include "base/error.hpp"
#include "config/value.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace soybean::config {

namespace {

constexpr int max_depth = 256;

/// Gives the place of a line of the document.
struct Places {
  std::string file;
  bool numbered = true; ///< false: a value given on the command line
  std::string at(std::uint32_t line) const { return numbered ? fmt::format("{}:{}", file, line) : file; }
};

Value convert(const toml::node& node, const Places& places, std::uint32_t line_of_parent);

std::string text_of_date(const toml::node& node) {
  std::ostringstream out;
  if (const auto* date = node.as_date()) out << *date;
  if (const auto* time = node.as_time()) out << *time;
  if (const auto* both = node.as_date_time()) out << *both;
  return out.str();
}

void convert_table(const toml::table& table, const Places& places, std::uint32_t line, Value& value) {
  struct Item {
    toml::source_position position;
    const toml::key* key;
    const toml::node* node;
  };
  std::vector<Item> items; // toml++ sorts by key: bring back the order of the file
  for (auto&& [key, node] : table) items.push_back({key.source().begin, &key, &node});
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::pair(a.position.line, a.position.column) < std::pair(b.position.line, b.position.column);
  });
  for (const Item& item : items) {
    const std::uint32_t key_line = item.position.line ? item.position.line : line;
    value.entries.push_back({std::string(item.key->str()), convert(*item.node, places, key_line)});
  }
}

Value convert(const toml::node& node, const Places& places, std::uint32_t line_of_parent) {
  const std::uint32_t line = node.source().begin.line ? node.source().begin.line : line_of_parent;
  Value value;
  value.where = places.at(line);
  switch (node.type()) {
  case toml::node_type::integer:
    value.kind = Kind::integer;
    value.integer = node.as_integer()->get();
    break;
  case toml::node_type::floating_point:
    value.kind = Kind::real;
    value.real = node.as_floating_point()->get();
    break;
  case toml::node_type::boolean:
    value.kind = Kind::boolean;
    value.boolean = node.as_boolean()->get();
    break;
  case toml::node_type::string:
    value.kind = Kind::text;
    value.text = node.as_string()->get();
    break;
  case toml::node_type::array:
    value.kind = Kind::array;
    for (const toml::node& item : *node.as_array()) value.items.push_back(convert(item, places, line));
    break;
  case toml::node_type::table:
    value.kind = Kind::table;
    convert_table(*node.as_table(), places, line, value);
    break;
  default:
    value.kind = Kind::date;
    value.text = text_of_date(node);
  }
  return value;
}

/// A key such as a.b.c.… may nest without bound and exhaust the stack: refuse lines with absurdly many dots outright
/// (runs of dots, as in comments, make no key).
void refuse_endless_keys(const std::string& text, const std::string& file) {
  int dots = 0;
  std::int64_t line = 1;
  char before = '\0';
  for (char c : text) {
    if (c == '.') dots = before == '.' ? 0 : dots + 1;
    if (c == '\n') ++line;
    if (c == '\n' || c == ',' || c == '=') dots = 0;
    if (dots > max_depth)
      fail("{}:{}: key, got more than {} parts expected fewer. nest tables less deeply", file, line, max_depth);
    before = c;
  }
}

std::string line_of(const std::string& text, std::uint32_t line) {
  std::istringstream in(text);
  std::string content;
  for (std::uint32_t i = 0; i < line && std::getline(in, content); ++i) {
  }
  const auto begin = content.find_first_not_of(" \t");
  const auto end = content.find_last_not_of(" \t\r");
  return begin == std::string::npos ? std::string() : content.substr(begin, end - begin + 1);
}

std::string one_line(std::string_view text) {
  std::string result;
  for (char c : text) result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return result;
}

struct TooLarge {
  std::string number, expected; ///< empty: that was not the fault
};

TooLarge too_large(std::string_view description) {
  const auto begin = description.find('\''), end = description.rfind('\'');
  if (begin == end) return {};
  std::string number(description.substr(begin + 1, end - begin - 1));
  if (number.size() > 60) number = number.substr(0, 60) + "…";
  if (description.ends_with("is not representable in 64 bits"))
    return {number, "an integer of at most 9223372036854775807"};
  if (description.find("floating-point") != description.npos &&
      description.ends_with("could not be interpreted as a value"))
    return {number, "a number below 1e+100"};
  return {};
}

/// Throws Error: `shown` is not TOML.
[[noreturn]] void refuse(const toml::parse_error& error, const std::string& where, const std::string& shown,
                         std::string_view what, std::string_view expected) {
  const TooLarge large = too_large(error.description());
  if (!large.number.empty()) fail("{}: number, got {} (too large) expected {}", where, large.number, large.expected);
  std::string said = one_line(error.description());
  if (said.starts_with("Error")) said.front() = 'e';
  fail("{}: {}, got {} expected {}. {}", where, what, quote(shown.substr(0, 60)), expected, said);
}

} // namespace

Value parse_document(const std::string& text, const std::string& file) {
  refuse_endless_keys(text, file);
  try {
    const toml::table table = toml::parse(text, std::string_view(file));
    Value root;
    root.where = file;
    convert_table(table, {file}, 1, root);
    return root;
  } catch (const toml::parse_error& error) {
    const std::uint32_t line = std::max<std::uint32_t>(1, error.source().begin.line);
    refuse(error, fmt::format("{}:{}", file, line), line_of(text, line), "syntax", "valid TOML");
  }
}

Value parse_override_value(const std::string& text, const std::string& where) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) fail("{}: value, got nothing expected a TOML value. write key=value", where);
  const std::string word = text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
  Value value;
  value.where = where;
  value.kind = Kind::text;
  value.text = word;
  refuse_endless_keys(text, where);
  const bool bracketed = std::string("\"'[{").find(word.front()) != std::string::npos;
  try {
    const toml::table table = toml::parse("value = " + text + "\n");
    const toml::node* node = table.get("value");
    if (table.size() == 1 && node && !node->is_date() && !node->is_time() && !node->is_date_time())
      return convert(*node, {where, false}, 1);
    if (table.size() != 1) fail("{}: value, got several lines expected one TOML value. use --set once per key", where);
  } catch (const toml::parse_error& error) {
    const bool number = word.find_first_not_of("+-._0123456789abcdefABCDEFox") == std::string::npos;
    if (bracketed || (number && !too_large(error.description()).number.empty()))
      refuse(error, where, word, "value", "a TOML value");
  }
  return value;
}

} // namespace soybean::config
