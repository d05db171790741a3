#pragma once
// Arrays of samples in files: elements of any usual type and byte order, one sample after the other. Hides conversion.
// Used by the readers of plain files.
#include "base/types.hpp"
#include "data/bytes.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace soybean::data {

enum class Element : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64, f16, f32, f64 };

std::int64_t size_of(Element element); ///< bytes
bool is_integer(Element element);
/// What counts as white in an image of such elements: 255, 65535, else 1.
double white_of(Element element);

/// `count` samples of shape `sample`; sample i begins at byte offset + i·stride of `bytes`.
struct Array {
  Bytes bytes;
  Element element = Element::u8;
  bool swapped = false; ///< most significant byte first
  Shape sample;
  std::int64_t count = 0;
  std::int64_t offset = 0, stride = 0;
  bool channels_last = false; ///< the file has [H, W, C] where `sample` says [C, H, W]
};

/// Elements first, first + 1, … of the array, whose samples have no gaps, as integers. Throws Error naming the file for
/// one beyond 32 bits.
std::vector<std::int32_t> read_integers(const Array& array);

/// The part `part` of sample `index`, row-major, as f32 or f64. Thread safe.
void read_part(const Array& array, std::int64_t index, const Box& part, DType type, void* out);

/// Takes a sample of shape `stored` for one of shape `expected`, whose elements are in the same order (dims of extent 1
/// do not count, and a plain list takes any shape), or in [H, W, C] for [C, H, W]. Sets sample and channels_last.
/// Throws Error otherwise, calling it `what`, expected as `why`.
void make_fit(Array& array, const Shape& stored, const Shape& expected, std::string_view what = "samples",
              std::string_view why = "as in model.input");

} // namespace soybean::data
