// Values as text: TOML for resolved configs, short descriptions for messages.
#include "base/error.hpp"
#include "config/value.hpp"

#include <algorithm>
#include <cmath>

namespace soybean::config {

namespace {

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool is_array_of_tables(const Value& value) {
  return value.kind == Kind::array && !value.items.empty() &&
         std::all_of(value.items.begin(), value.items.end(), [](const Value& v) { return v.kind == Kind::table; });
}

/// Arrays of tables one element per line, nested ones (repeat, residual) indented; everything else on one line.
std::string block(const Value& value, int indent) {
  if (is_array_of_tables(value)) {
    std::string text = "[\n";
    for (const Value& item : value.items) text += std::string(indent + 2, ' ') + block(item, indent + 2) + ",\n";
    return text + std::string(indent, ' ') + "]";
  }
  if (value.kind == Kind::table) {
    std::string text = "{";
    for (const Entry& entry : value.entries)
      text += fmt::format("{} {} = {}", &entry == &value.entries.front() ? "" : ",", key_text(entry.key),
                          block(entry.value, indent));
    return text + (value.entries.empty() ? "}" : " }");
  }
  return to_inline_toml(value);
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
  case Kind::integer:
    return "integer";
  case Kind::real:
    return "number";
  case Kind::boolean:
    return "boolean";
  case Kind::text:
    return "string";
  case Kind::date:
    return "date or time";
  case Kind::array:
    return "array";
  case Kind::table:
    return "table";
  }
  throw Bug("unknown kind of value");
}

} // namespace

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      result += fmt::format("\\u{:04X}", byte);
    else
      result += c;
  }
  return result + "\"";
}

std::string key_text(const std::string& key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? key : quote(key);
}

std::string to_inline_toml(const Value& value) {
  std::string text;
  switch (value.kind) {
  case Kind::integer:
    return fmt::format("{}", value.integer);
  case Kind::real:
    return real_text(value.real);
  case Kind::boolean:
    return value.boolean ? "true" : "false";
  case Kind::text:
    return quote(value.text);
  case Kind::date:
    return value.text;
  case Kind::array:
    for (const Value& item : value.items) text += fmt::format("{}{}", text.empty() ? "" : ", ", to_inline_toml(item));
    return fmt::format("[{}]", text);
  case Kind::table:
    for (const Entry& entry : value.entries)
      text += fmt::format("{}{} = {}", text.empty() ? " " : ", ", key_text(entry.key), to_inline_toml(entry.value));
    return text.empty() ? "{}" : fmt::format("{{{} }}", text);
  }
  throw Bug("unknown kind of value");
}

std::string to_toml_sections(const Value& table, const std::string& path) {
  // The root's tables are sections; anything deeper stays inline, as model files are written. TOML 1.0 wants inline
  // tables on one line, but lets arrays in them run over several.
  std::string text, sections;
  for (const Entry& entry : table.entries) {
    if (path.empty() && entry.value.kind == Kind::table)
      sections += fmt::format("{}{}", sections.empty() ? "" : "\n", to_toml_sections(entry.value, key_text(entry.key)));
    else
      text += fmt::format("{} = {}\n", key_text(entry.key), block(entry.value, 0));
  }
  if (!path.empty()) return fmt::format("[{}]\n{}", path, text);
  return text + (text.empty() || sections.empty() ? "" : "\n") + sections;
}

std::string describe(const Value& value) {
  std::string text = to_inline_toml(value);
  constexpr std::size_t longest = 48;
  if (text.size() > longest) {
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end; // not within a UTF-8 sequence
    text = text.substr(0, end) + "…";
  }
  return fmt::format("{} ({})", text, kind_name(value.kind));
}

} // namespace soybean::config
