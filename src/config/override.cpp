// `--set a.b[2].c=value`: overrides on a parsed document.
#include "base/error.hpp"
#include "config/table.hpp"
#include "config/value.hpp"

#include <algorithm>

namespace soybean::config {

namespace {

/// One part of a path: a key, or an index into the array before it.
struct Part {
  std::string key;
  std::int64_t index = -1; ///< >= 0: an index
};

constexpr std::size_t most_parts = 64;

class PathParser {
public:
  PathParser(const std::string& text, const std::string& where) : text_(text), where_(where) {}

  /// Parses up to the `=`; `end` is its position.
  std::vector<Part> parse(std::size_t& end) {
    std::vector<Part> parts;
    while (true) {
      parts.push_back({key()});
      while (peek() == '[') parts.push_back({"", index()});
      if (parts.size() > most_parts) fail("{}: key, got more than {} parts expected fewer", where_, most_parts);
      if (peek() == '=') break;
      if (peek() != '.') bad();
      ++at_;
    }
    end = at_;
    return parts;
  }

private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  [[noreturn]] void bad() const {
    fail("{}: key, got {} expected key=value. write for example train.steps=100", where_, quote(text_.substr(0, 60)));
  }
  std::string key() {
    const char first = peek();
    const bool in_quotes = first == '"' || first == '\'';
    const std::size_t begin = in_quotes ? at_ + 1 : at_;
    const std::size_t end = in_quotes ? text_.find(first, begin) : text_.find_first_of(".[]= \"'", begin);
    if (end == std::string::npos || end == begin) bad();
    at_ = in_quotes ? end + 1 : end;
    return text_.substr(begin, end - begin);
  }
  std::int64_t index() {
    const std::size_t begin = at_ + 1, end = text_.find(']', begin);
    if (end == std::string::npos || end == begin || end - begin >= 9) bad();
    const std::string digits = text_.substr(begin, end - begin);
    if (digits.find_first_not_of("0123456789") != std::string::npos) bad();
    at_ = end + 1;
    return std::stoll(digits);
  }

  const std::string& text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

Value& step_into(Value& value, const Part& part, const std::string& path, const std::string& where) {
  if (part.index >= 0) {
    if (value.kind != Kind::array) fail("{}: {}, got {} expected an array", where, path, describe(value));
    if (part.index >= static_cast<std::int64_t>(value.items.size()))
      fail("{}: {}, got index {} expected less than {}", where, path, part.index, value.items.size());
    return value.items[static_cast<std::size_t>(part.index)];
  }
  if (value.kind != Kind::table) fail("{}: {}, got {} expected a table", where, path, describe(value));
  if (Value* found = find(value, part.key)) return *found;
  Value made;
  made.where = where;
  value.entries.push_back({part.key, std::move(made)});
  return value.entries.back().value;
}

void mark(Value& value, int override) {
  value.overridden = override;
  for (Value& item : value.items) mark(item, override);
  for (Entry& entry : value.entries) mark(entry.value, override);
}

} // namespace

Value* find(Value& table, std::string_view key) {
  for (Entry& entry : table.entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

void Table::apply_override(const std::string& assignment) {
  std::string where = fmt::format("--set {}", assignment); // stands in messages: one line
  std::replace_if(
      where.begin(), where.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  std::size_t equals = 0;
  const std::vector<Part> parts = PathParser(assignment, where).parse(equals);
  Value value = parse_override_value(assignment.substr(equals + 1), where);
  Value* at = value_;
  std::string path;
  for (const Part& part : parts) {
    at = &step_into(*at, part, path, where);
    if (part.index >= 0)
      path += fmt::format("[{}]", part.index);
    else
      path += fmt::format("{}{}", path.empty() ? "" : ".", key_text(part.key));
  }
  *at = std::move(value);
  mark(*at, ++document_->overrides);
}

} // namespace soybean::config
