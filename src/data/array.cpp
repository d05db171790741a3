#include "data/array.hpp"

#include "base/error.hpp"
#include "data/part.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

namespace soybean::data {

namespace {

struct Half {
  std::uint16_t bits;
};

double to_double(Half half) {
  const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
  double value;
  if (exponent == 0)
    value = std::ldexp(fraction, -24);
  else if (exponent == 31)
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else
    value = std::ldexp(1024 + fraction, exponent - 25);
  return half.bits >> 15 ? -value : value;
}

/// Calls f with a value of the element's type.
template<class F>
decltype(auto) with_type(Element element, F&& f) {
  switch (element) {
  case Element::u8:
    return f(std::uint8_t{});
  case Element::i8:
    return f(std::int8_t{});
  case Element::u16:
    return f(std::uint16_t{});
  case Element::i16:
    return f(std::int16_t{});
  case Element::u32:
    return f(std::uint32_t{});
  case Element::i32:
    return f(std::int32_t{});
  case Element::u64:
    return f(std::uint64_t{});
  case Element::i64:
    return f(std::int64_t{});
  case Element::f16:
    return f(Half{});
  case Element::f32:
    return f(float{});
  case Element::f64:
    return f(double{});
  }
  throw Bug("unknown Element");
}

template<class Stored>
Stored load(const std::byte* from, bool swapped) {
  std::array<std::byte, sizeof(Stored)> bytes;
  std::memcpy(bytes.data(), from, sizeof(Stored));
  if (swapped) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<Stored>(bytes);
}

template<class Stored, class To>
void convert(const std::byte* from, std::int64_t count, bool swapped, To* to) {
  for (std::int64_t i = 0; i < count; ++i, from += sizeof(Stored)) {
    const Stored value = load<Stored>(from, sizeof(Stored) > 1 && swapped);
    if constexpr (std::is_same_v<Stored, Half>)
      to[i] = static_cast<To>(to_double(value));
    else
      to[i] = static_cast<To>(value);
  }
}

template<class To>
void read_runs(const Array& array, std::int64_t index, const Box& part, To* out) {
  const std::int64_t width = size_of(array.element), begin = array.offset + index * array.stride;
  std::vector<std::byte> raw;
  for_each_run(array.sample, part, [&](std::int64_t first, std::int64_t count) {
    raw.resize(static_cast<std::size_t>(count * width));
    array.bytes.read(begin + first * width, count * width, raw.data());
    with_type(array.element, [&]<class Stored>(Stored) { convert<Stored>(raw.data(), count, array.swapped, out); });
    out += count;
  });
}

/// The same where the file has [H, W, C]: rows of the part are read with all their channels.
template<class To>
void read_channels_last(const Array& array, std::int64_t index, const Box& part, To* out) {
  const std::int64_t channels = array.sample[0], width = array.sample[2];
  const std::int64_t rows = part.extents[1], columns = part.extents[2];
  const Box stored{{part.offsets[1], part.offsets[2], 0}, {rows, columns, channels}};
  std::vector<To> values(static_cast<std::size_t>(rows * columns * channels));
  std::vector<std::byte> raw;
  const std::int64_t bytes = size_of(array.element), begin = array.offset + index * array.stride;
  To* to = values.data();
  for_each_run({array.sample[1], width, channels}, stored, [&](std::int64_t first, std::int64_t count) {
    raw.resize(static_cast<std::size_t>(count * bytes));
    array.bytes.read(begin + first * bytes, count * bytes, raw.data());
    with_type(array.element, [&]<class Stored>(Stored) { convert<Stored>(raw.data(), count, array.swapped, to); });
    to += count;
  });
  for (std::int64_t c = part.offsets[0]; c < part.offsets[0] + part.extents[0]; ++c)
    for (std::int64_t i = 0; i < rows * columns; ++i) *out++ = values[static_cast<std::size_t>(i * channels + c)];
}

/// The shape without its dims of extent 1.
Shape squeezed(Shape shape) {
  std::erase(shape, 1);
  return shape;
}

} // namespace

std::int64_t size_of(Element element) {
  return with_type(element, []<class Stored>(Stored) { return static_cast<std::int64_t>(sizeof(Stored)); });
}

bool is_integer(Element element) {
  return element != Element::f16 && element != Element::f32 && element != Element::f64;
}

double white_of(Element element) {
  return element == Element::u8 ? 255 : element == Element::u16 ? 65535 : 1;
}

std::vector<std::int32_t> read_integers(const Array& array) {
  const std::int64_t count = array.count * volume(array.sample), width = size_of(array.element);
  ensure(is_integer(array.element) && array.stride == width * volume(array.sample), "no array of integers");
  std::vector<std::byte> raw(static_cast<std::size_t>(count * width));
  array.bytes.read(array.offset, count * width, raw.data());
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    with_type(array.element, [&]<class Stored>(Stored) {
      if constexpr (std::is_integral_v<Stored>) {
        const auto value = load<Stored>(raw.data() + i * width, array.swapped);
        if (!std::in_range<std::int32_t>(value))
          fail("{}: element {}, got {} expected an integer of 32 bits", array.bytes.name(), i, value);
        // NOLINTNEXTLINE(bugprone-signed-char-misuse): an element of 8 bits is a number here, not a character
        values[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(value);
      }
    });
  return values;
}

void read_part(const Array& array, std::int64_t index, const Box& part, DType type, void* out) {
  const auto read = [&](auto* to) {
    array.channels_last ? read_channels_last(array, index, part, to) : read_runs(array, index, part, to);
  };
  type == DType::f64 ? read(static_cast<double*>(out)) : read(static_cast<float*>(out));
}

void make_fit(Array& array, const Shape& stored, const Shape& expected, std::string_view what, std::string_view why) {
  array.sample = expected;
  array.channels_last = false;
  if (squeezed(stored) == squeezed(expected)) return;
  if (expected.size() == 1 && volume(stored) == expected[0]) return;
  if (stored.size() == 3 && expected.size() == 3 && Shape{stored[2], stored[0], stored[1]} == expected) {
    array.channels_last = true;
    return;
  }
  fail("{}: got {} of shape {} expected {} {}", array.bytes.name(), what, to_string(stored), to_string(expected), why);
}

} // namespace soybean::data
