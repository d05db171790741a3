#include "base/error.hpp"

namespace soybean {

void ensure(bool condition, const std::string& what, std::source_location where) {
  if (condition) return;
  throw Bug(fmt::format("{}:{}: {}: {}", where.file_name(), where.line(), where.function_name(), what));
}

} // namespace soybean
