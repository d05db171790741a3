#include "config/table.hpp"

#include "base/error.hpp"
#include "config/value.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace soybean::config {

namespace {

constexpr double largest_real = 1e100; ///< beyond it a setting is a mistake, and products of two still are finite

[[noreturn]] void wrong(const Value& value, const std::string& path, std::string_view expected, std::string_view hint) {
  fail("{}: {}, got {} expected {}{}{}", value.where, path, describe(value), expected, hint.empty() ? "" : ". ", hint);
}

std::int64_t as_integer(const Value& value, const std::string& path, const Limits& limits, std::string_view expected) {
  if (value.kind != Kind::integer) wrong(value, path, expected, "");
  if (value.integer < limits.low) wrong(value, path, fmt::format("at least {}", limits.low), "");
  if (value.integer > limits.high) wrong(value, path, fmt::format("at most {}", limits.high), "");
  return value.integer;
}

double as_real(const Value& value, const std::string& path, std::string_view expected) {
  if (value.kind == Kind::integer) return static_cast<double>(value.integer);
  if (value.kind != Kind::real) wrong(value, path, expected, "");
  if (!std::isfinite(value.real)) wrong(value, path, "a finite number", "");
  if (std::abs(value.real) > largest_real) wrong(value, path, fmt::format("a number below {}", largest_real), "");
  return value.real;
}

void ask(Value& table, std::string_view key) {
  if (std::find(table.asked.begin(), table.asked.end(), key) == table.asked.end()) table.asked.emplace_back(key);
}

struct Unread {
  const Entry* entry;
  std::string path;
  std::string hint;
};

std::string path_below(const std::string& path, std::string_view key) {
  const std::string text = key_text(std::string(key));
  return path.empty() ? text : path + "." + text;
}

void collect_unread(const Value& table, const std::string& path, std::vector<Unread>& found);

void collect_in_value(const Value& value, const std::string& path, std::vector<Unread>& found) {
  if (value.kind == Kind::table) collect_unread(value, path, found);
  for (std::size_t i = 0; i < value.items.size(); ++i)
    collect_in_value(value.items[i], fmt::format("{}[{}]", path, i), found);
}

void collect_unread(const Value& table, const std::string& path, std::vector<Unread>& found) {
  for (const Entry& entry : table.entries) {
    const std::string below = path_below(path, entry.key);
    if (entry.value.read)
      collect_in_value(entry.value, below, found);
    else
      found.push_back({&entry, below, suggestion(entry.key, table.asked)});
  }
}

/// Keys of this table that nobody asked for, spelt much like one that was asked for and is not there.
std::vector<Unread> misspelt(Value& table, const std::string& path) {
  std::vector<std::string> absent;
  for (const std::string& key : table.asked)
    if (!find(table, key)) absent.push_back(key);
  std::vector<Unread> found;
  for (const Entry& entry : table.entries) {
    const bool asked = std::find(table.asked.begin(), table.asked.end(), entry.key) != table.asked.end();
    if (!asked && !nearest(entry.key, absent).empty())
      found.push_back({&entry, path_below(path, entry.key), suggestion(entry.key, absent)});
  }
  return found;
}

[[noreturn]] void fail_unknown(const std::vector<Unread>& unread) {
  const Unread& first = unread.front();
  std::string more;
  for (std::size_t i = 1; i < unread.size() && i < 6; ++i)
    more += fmt::format("{}{} ({})", i > 1 ? ", " : "", unread[i].path, unread[i].entry->value.where);
  if (unread.size() > 6) more += ", …";
  const std::string_view stop = first.hint.ends_with('?') ? " " : ". ";
  fail("{}: unknown key {}, got {} expected a known key. {}{}{}", first.entry->value.where, first.path,
       describe(first.entry->value), first.hint, more.empty() ? "" : fmt::format("{}also unknown: ", stop), more);
}

int last_override(const Value& value) {
  int last = value.overridden;
  for (const Value& item : value.items) last = std::max(last, last_override(item));
  for (const Entry& entry : value.entries) last = std::max(last, last_override(entry.value));
  return last;
}

} // namespace

Table Table::parse(const std::string& text, const std::string& file) {
  auto document = std::make_shared<Document>();
  document->root = parse_document(text, file);
  document->file = file;
  Value* root = &document->root;
  return Table(std::move(document), root, "");
}

/// The value of a key, which then counts as read; null without the key.
const Value* Table::get(std::string_view key) const {
  ask(*value_, key);
  Value* value = find(*value_, key);
  if (value) value->read = true;
  return value;
}

/// In place of the value of a key that is not there. Throws Error without a fallback.
template<class T>
T Table::or_missing(std::optional<T> fallback, std::string_view key, std::string_view expected) const {
  if (!fallback) missing(key, expected, "");
  return *std::move(fallback);
}

void Table::missing(std::string_view key, std::string_view expected, std::string_view hint) const {
  for (const auto& [table, path] : {std::pair(value_, path_), std::pair(&document_->root, std::string())})
    if (const std::vector<Unread> found = misspelt(*table, path); !found.empty()) fail_unknown(found);
  fail("{}: {}, got nothing expected {}{}{}", where(), path(key), expected, hint.empty() ? "" : ". ", hint);
}

std::int64_t Table::integer(std::string_view key, std::optional<std::int64_t> fallback, Limits limits) const {
  const Value* value = get(key);
  return value ? as_integer(*value, path(key), limits, "an integer") : or_missing(fallback, key, "an integer");
}

double Table::real(std::string_view key, std::optional<double> fallback) const {
  const Value* value = get(key);
  return value ? as_real(*value, path(key), "a number") : or_missing(fallback, key, "a number");
}

bool Table::boolean(std::string_view key, std::optional<bool> fallback) const {
  const Value* value = get(key);
  if (!value) return or_missing(fallback, key, "true or false");
  if (value->kind != Kind::boolean) wrong(*value, path(key), "true or false", "");
  return value->boolean;
}

std::string Table::text(std::string_view key, std::optional<std::string> fallback) const {
  const Value* value = get(key);
  if (!value) return or_missing(std::move(fallback), key, "a string");
  if (value->kind != Kind::text) wrong(*value, path(key), "a string", "");
  if (value->text.find('\0') != std::string::npos) wrong(*value, path(key), "a string without zero bytes", "");
  return value->text;
}

std::string Table::word(std::string_view key, std::optional<std::string> fallback, const Words& words) const {
  const std::string list = fmt::format("{}{}", words.now.size() > 1 ? "one of " : "", fmt::join(words.now, ", "));
  if (!fallback && !has(key)) missing(key, list, "");
  const std::string chosen = text(key, std::move(fallback));
  if (std::find(words.now.begin(), words.now.end(), chosen) != words.now.end()) return chosen;
  if (std::find(words.later.begin(), words.later.end(), chosen) != words.later.end())
    reject(key, list, fmt::format("{} is not supported yet", quote(chosen)));
  const std::string meant = nearest(chosen, words.now);
  reject(key, list, meant.empty() ? "" : fmt::format("did you mean {}?", quote(meant)));
}

std::vector<std::int64_t> Table::integers(std::string_view key, std::optional<std::vector<std::int64_t>> fallback,
                                          Limits limits) const {
  const Value* value = get(key);
  if (!value) return or_missing(std::move(fallback), key, "a list of integers");
  if (value->kind != Kind::array) wrong(*value, path(key), "a list of integers", "");
  std::vector<std::int64_t> result;
  result.reserve(value->items.size());
  for (std::size_t i = 0; i < value->items.size(); ++i)
    result.push_back(as_integer(value->items[i], fmt::format("{}[{}]", path(key), i), limits, "an integer"));
  return result;
}

std::vector<double> Table::reals(std::string_view key, std::optional<std::vector<double>> fallback) const {
  const Value* value = get(key);
  if (!value) return or_missing(std::move(fallback), key, "a list of numbers");
  if (value->kind != Kind::array) wrong(*value, path(key), "a list of numbers", "");
  std::vector<double> result;
  result.reserve(value->items.size());
  for (std::size_t i = 0; i < value->items.size(); ++i)
    result.push_back(as_real(value->items[i], fmt::format("{}[{}]", path(key), i), "a number"));
  return result;
}

std::vector<std::string> Table::texts(std::string_view key, std::optional<std::vector<std::string>> fallback) const {
  const Value* value = get(key);
  if (!value) return or_missing(std::move(fallback), key, "a list of strings");
  if (value->kind != Kind::array) wrong(*value, path(key), "a list of strings", "");
  std::vector<std::string> result;
  result.reserve(value->items.size());
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    if (value->items[i].kind != Kind::text) wrong(value->items[i], fmt::format("{}[{}]", path(key), i), "a string", "");
    result.push_back(value->items[i].text);
  }
  return result;
}

std::array<std::int64_t, 2> Table::pair(std::string_view key, std::optional<std::array<std::int64_t, 2>> fallback,
                                        Limits limits) const {
  constexpr std::string_view expected = "an integer or a list of two";
  const Value* value = get(key);
  if (!value) return or_missing(fallback, key, expected);
  if (value->kind == Kind::array && value->items.size() == 2) {
    const std::vector<std::int64_t> both = integers(key, required, limits);
    return {both[0], both[1]};
  }
  const std::int64_t one = as_integer(*value, path(key), limits, expected);
  return {one, one};
}

std::array<std::int64_t, 4> Table::edges(std::string_view key, std::optional<std::array<std::int64_t, 4>> fallback,
                                         Limits limits) const {
  constexpr std::string_view expected = "an integer or a list of two or four";
  const Value* value = get(key);
  if (!value) return or_missing(fallback, key, expected);
  if (value->kind != Kind::array) {
    const std::int64_t one = as_integer(*value, path(key), limits, expected);
    return {one, one, one, one};
  }
  if (value->items.size() != 2 && value->items.size() != 4) wrong(*value, path(key), expected, "");
  const std::vector<std::int64_t> all = integers(key, required, limits);
  return {all[0], all[1], all[all.size() - 2], all[all.size() - 1]};
}

Table Table::table(std::string_view key) const {
  ask(*value_, key);
  if (Value* value = find(*value_, key)) {
    if (value->kind != Kind::table) wrong(*value, path(key), "a table", "");
    value->read = true;
    return Table(document_, value, path(key));
  }
  Value empty;
  empty.where = value_->where;
  document_->absent.push_back(std::move(empty));
  return Table(document_, &document_->absent.back(), path(key));
}

std::vector<Table> Table::tables(std::string_view key) const {
  if (!get(key)) missing(key, "a list of tables", "");
  return tables_in(*find(*value_, key), path(key));
}

std::vector<std::vector<Table>> Table::table_lists(std::string_view key) const {
  if (!get(key)) missing(key, "a list of lists of tables", "");
  Value* value = find(*value_, key);
  if (value->kind != Kind::array) wrong(*value, path(key), "a list of lists of tables", "");
  std::vector<std::vector<Table>> result;
  result.reserve(value->items.size());
  for (std::size_t i = 0; i < value->items.size(); ++i)
    result.push_back(tables_in(value->items[i], fmt::format("{}[{}]", path(key), i)));
  return result;
}

std::vector<Table> Table::tables_in(Value& value, const std::string& path) const {
  if (value.kind != Kind::array) wrong(value, path, "a list of tables", "");
  std::vector<Table> result;
  result.reserve(value.items.size());
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const std::string item_path = fmt::format("{}[{}]", path, i);
    if (value.items[i].kind != Kind::table) wrong(value.items[i], item_path, "a table", "");
    result.push_back(Table(document_, &value.items[i], item_path));
  }
  return result;
}

bool Table::is_text(std::string_view key) const {
  ask(*value_, key);
  const Value* value = find(*value_, key);
  return value != nullptr && value->kind == Kind::text;
}

bool Table::has(std::string_view key) const {
  ask(*value_, key);
  return find(*value_, key) != nullptr;
}

bool Table::has_table(std::string_view key) const {
  return has(key) && find(*value_, key)->kind == Kind::table;
}

bool Table::has_list(std::string_view key) const {
  return has(key) && find(*value_, key)->kind == Kind::array;
}

int Table::overridden(std::string_view key) const {
  const Value* value = find(*value_, key);
  return value ? last_override(*value) : 0;
}

void Table::known(std::initializer_list<std::string_view> keys) const {
  for (std::string_view key : keys) ask(*value_, key);
}

void Table::pass_over(std::string_view key) const {
  ask(*value_, key);
  if (Value* value = find(*value_, key)) value->read = true;
}

std::vector<std::string> Table::keys() const {
  std::vector<std::string> result;
  result.reserve(value_->entries.size());
  for (const Entry& entry : value_->entries) result.push_back(entry.key);
  return result;
}

void Table::not_yet(std::string_view key) const {
  if (has(key)) reject(key, "no such key", fmt::format("{} is not supported yet", quote(key)));
}

const std::string& Table::file() const {
  return document_->file;
}

const std::string& Table::where() const {
  return value_->where;
}

std::string Table::where(std::string_view key) const {
  const Value* value = find(*value_, key);
  return value ? value->where : value_->where;
}

std::string Table::path(std::string_view key) const {
  return path_below(path_, key);
}

void Table::reject(std::string_view key, std::string_view expected, std::string_view hint) const {
  if (const Value* value = find(*value_, key)) wrong(*value, path(key), expected, hint);
  missing(key, expected, hint);
}

void Table::report_unread() const {
  std::vector<Unread> unread;
  collect_unread(*value_, path_, unread);
  if (!unread.empty()) fail_unknown(unread);
}

std::string Table::to_toml() const {
  return to_toml_sections(*value_, path_);
}

std::string read_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) fail("{}: file, got nothing expected a readable file. check the path", path);
  if (fs::is_directory(status)) fail("{}: file, got a directory expected a readable file", path);
  constexpr std::size_t largest = std::size_t{64} << 20;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (in && text.size() <= largest) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof() && text.size() <= largest) fail("{}: file, got an unreadable file expected a readable one", path);
  if (text.size() > largest) fail("{}: file, got more than 64 MiB expected a text file", path);
  return text;
}

} // namespace soybean::config
