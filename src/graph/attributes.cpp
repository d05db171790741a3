#include "base/error.hpp"
#include "graph/graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace soybean::graph {
namespace {

template<class T>
const T& as(const Attribute& value, std::string_view name, std::string_view type) {
  const T* held = std::get_if<T>(&value);
  if (held == nullptr) ensure(false, fmt::format("attribute '{}' is {}, not {}", name, to_string(value), type));
  return *held;
}

} // namespace

void Attributes::set(std::string name, Attribute value) {
  for (auto& [known, held] : items_) {
    if (known == name) {
      held = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::move(name), std::move(value));
}

bool Attributes::has(std::string_view name) const {
  for (const auto& item : items_)
    if (item.first == name) return true;
  return false;
}

const Attribute& Attributes::at(std::string_view name) const {
  for (const auto& item : items_)
    if (item.first == name) return item.second;
  throw Bug(fmt::format("no attribute '{}'", name));
}

std::int64_t Attributes::integer(std::string_view name) const {
  return as<std::int64_t>(at(name), name, "an integer");
}

double Attributes::real(std::string_view name) const {
  return as<double>(at(name), name, "a real number");
}

const std::string& Attributes::text(std::string_view name) const {
  return as<std::string>(at(name), name, "text");
}

const std::vector<std::int64_t>& Attributes::integers(std::string_view name) const {
  return as<std::vector<std::int64_t>>(at(name), name, "a list of integers");
}

std::string to_string(const Attribute& attribute) {
  if (const auto* i = std::get_if<std::int64_t>(&attribute)) return fmt::format("{}", *i);
  if (const auto* s = std::get_if<std::string>(&attribute)) return fmt::format("\"{}\"", *s);
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&attribute))
    return fmt::format("[{}]", fmt::join(*v, ", "));
  const double real = std::get<double>(attribute);
  std::string text = fmt::format("{}", real);
  if (std::isfinite(real) && text.find_first_of(".e") == std::string::npos) text += ".0"; // not an integer
  return text;
}

} // namespace soybean::graph
