#pragma once
// The plain types every layer shares: shapes, boxes, element types.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace soybean {

/// Extents of a tensor, outermost dim first, in logical (NCHW, OIHW) order. A scalar has no dims.
using Shape = std::vector<std::int64_t>;

/// Number of elements; 1 for a scalar.
std::int64_t volume(const Shape& shape);
/// "64x3x224x224"; "scalar" for no dims.
std::string to_string(const Shape& shape);

enum class DType : std::uint8_t { f32, f64, i32 };
std::int64_t size_of(DType type); ///< bytes of one element
std::string_view to_string(DType type);

/// A rectangular range of a tensor's global index space: [offsets, offsets + extents) in logical order.
struct Box {
  Shape offsets;
  Shape extents;
  bool operator==(const Box&) const = default;
};

std::int64_t volume(const Box& box);
bool empty(const Box& box);                        ///< true when some extent is 0
Box intersect(const Box& a, const Box& b);         ///< empty extents are 0, never negative
bool contains(const Box& outer, const Box& inner); ///< an empty inner is contained everywhere
Box whole(const Shape& shape);                     ///< the box that covers a tensor
std::string to_string(const Box& box);             ///< "[0:32, 0:64]"

} // namespace soybean
