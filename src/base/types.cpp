#include "base/types.hpp"

#include "base/error.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace soybean {

std::int64_t volume(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= extent;
  return n;
}

std::string to_string(const Shape& shape) {
  return shape.empty() ? std::string("scalar") : fmt::format("{}", fmt::join(shape, "x"));
}

std::int64_t size_of(DType type) {
  return type == DType::f64 ? 8 : 4;
}

std::string_view to_string(DType type) {
  switch (type) {
  case DType::f32:
    return "fp32";
  case DType::f64:
    return "fp64";
  case DType::i32:
    return "int32";
  }
  throw Bug("unknown DType");
}

std::int64_t volume(const Box& box) {
  return volume(box.extents);
}

bool empty(const Box& box) {
  return volume(box) == 0;
}

Box intersect(const Box& a, const Box& b) {
  ensure(a.offsets.size() == b.offsets.size(), "boxes of different rank");
  Box c = a;
  for (std::size_t d = 0; d < a.offsets.size(); ++d) {
    const std::int64_t end = std::min(a.offsets[d] + a.extents[d], b.offsets[d] + b.extents[d]);
    c.offsets[d] = std::max(a.offsets[d], b.offsets[d]);
    c.extents[d] = std::max<std::int64_t>(0, end - c.offsets[d]);
  }
  return c;
}

bool contains(const Box& outer, const Box& inner) {
  return volume(intersect(outer, inner)) == volume(inner);
}

Box whole(const Shape& shape) {
  return {Shape(shape.size(), 0), shape};
}

std::string to_string(const Box& box) {
  std::string text = "[";
  for (std::size_t d = 0; d < box.offsets.size(); ++d)
    text += fmt::format("{}{}:{}", d ? ", " : "", box.offsets[d], box.offsets[d] + box.extents[d]);
  return text + "]";
}

} // namespace soybean
