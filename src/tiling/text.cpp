// The text form of tilings.
#include "base/error.hpp"
#include "tiling/tiling.hpp"

#include <charconv>
#include <optional>

namespace soybean::tiling {

namespace {

std::string to_string(const Halo& halo) {
  std::string text = halo.reach == Reach::windows      ? "windows("
                     : halo.reach == Reach::neighbours ? "neighbours("
                                                       : "halo(";
  text += std::to_string(halo.kernel);
  if (halo.stride != 1) text += fmt::format(" stride {}", halo.stride);
  if (halo.dilation != 1) text += fmt::format(" dilation {}", halo.dilation);
  if (halo.padding != 0) text += fmt::format(" padding {}", halo.padding);
  return text + ")";
}

std::string to_string(const Entry& entry) {
  switch (entry.kind) {
  case Kind::replicate:
    return "replicate";
  case Kind::partial:
    return "partial";
  case Kind::split:
    break;
  }
  const std::string text =
      entry.unit == 1 ? fmt::format("split({})", entry.dim) : fmt::format("split({}/{})", entry.dim, entry.unit);
  return entry.halo.reach == Reach::none ? text : text + "+" + to_string(entry.halo);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template<class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "0" or "1/36", what stands between the brackets of split; nullopt when it is not of this form.
std::optional<Entry> parse_split(std::string_view text, const Shape& units) {
  const auto slash = text.find('/');
  const auto dim = parse_number<std::int32_t>(trimmed(text.substr(0, slash)));
  if (!dim || *dim < 0) return std::nullopt;
  if (slash != std::string_view::npos) {
    const auto unit = parse_number<std::int64_t>(trimmed(text.substr(slash + 1)));
    if (!unit || *unit < 1) return std::nullopt;
    return split(*dim, *unit);
  }
  const auto d = static_cast<std::size_t>(*dim);
  return split(*dim, d < units.size() ? units[d] : 1);
}

std::optional<Entry> parse_entry(std::string_view text, const Shape& units) {
  constexpr std::string_view opening = "split(";
  if (text == "replicate") return replicate();
  if (text == "partial") return partial();
  if (!text.starts_with(opening) || !text.ends_with(')')) return std::nullopt;
  return parse_split(text.substr(opening.size(), text.size() - opening.size() - 1), units);
}

} // namespace

std::string to_string(const Tiling& tiling) {
  if (tiling.empty()) return "whole";
  std::string text;
  for (const Entry& entry : tiling) {
    if (!text.empty()) text += ',';
    text += to_string(entry);
  }
  return text;
}

Tiling parse_tiling(std::string_view text, std::string_view where, const Shape& units) {
  if (trimmed(text) == "whole") return {};
  Tiling tiling;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = trimmed(text.substr(begin, end - begin));
    const auto entry = parse_entry(part, units);
    if (!entry)
      fail("{}: entry of tiling \"{}\", got \"{}\" expected split(DIM), split(DIM/UNIT), replicate or partial. write "
           "one entry per cut, separated by commas, such as \"split(0),replicate\"",
           where, text, part);
    tiling.push_back(*entry);
    begin = end + 1;
  }
  return tiling;
}

} // namespace soybean::tiling
