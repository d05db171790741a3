#include "data/image.hpp"

#include "base/error.hpp"
#include "data/linear.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace soybean::data {

namespace {

constexpr int fraction_bits = 22; // Pillow's fixed point

std::uint8_t clipped(std::int64_t sum) {
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> fraction_bits, 0, 255));
}

std::vector<std::int32_t> fixed(const std::vector<double>& weights) {
  std::vector<std::int32_t> result(weights.size());
  std::transform(weights.begin(), weights.end(), result.begin(),
                 [](double w) { return static_cast<std::int32_t>((w < 0 ? -0.5 : 0.5) + w * (1 << fraction_bits)); });
  return result;
}

Image resize_rows(const Image& image, std::int64_t width) {
  Image out{image.height, width, image.channels, {}};
  out.pixels.resize(static_cast<std::size_t>(out.height * width * out.channels));
  const Taps taps = linear_taps(image.width, width);
  const std::vector<std::int32_t> weights = fixed(taps.weights);
  std::uint8_t* to = out.pixels.data();
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* row = image.pixels.data() + y * image.width * image.channels;
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < image.channels; ++c) {
        std::int64_t sum = 1 << (fraction_bits - 1);
        for (std::int64_t k = 0; k < taps.counts[x]; ++k)
          sum += std::int64_t{row[(taps.firsts[x] + k) * image.channels + c]} * weights[x * taps.most + k];
        *to++ = clipped(sum);
      }
  }
  return out;
}

Image resize_columns(const Image& image, std::int64_t height) {
  Image out{height, image.width, image.channels, {}};
  const std::int64_t row = image.width * image.channels;
  out.pixels.resize(static_cast<std::size_t>(height * row));
  const Taps taps = linear_taps(image.height, height);
  const std::vector<std::int32_t> weights = fixed(taps.weights);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(row));
  for (std::int64_t y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), 1 << (fraction_bits - 1));
    for (std::int64_t k = 0; k < taps.counts[y]; ++k) {
      const std::uint8_t* from = image.pixels.data() + (taps.firsts[y] + k) * row;
      const std::int32_t weight = weights[y * taps.most + k];
      for (std::int64_t i = 0; i < row; ++i) sums[i] += from[i] * weight;
    }
    std::uint8_t* to = out.pixels.data() + y * row;
    for (std::int64_t i = 0; i < row; ++i) to[i] = clipped(sums[i]);
  }
  return out;
}

} // namespace

Image decode_image(const Bytes& file, std::int64_t channels) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.size()));
  file.read(0, file.size(), bytes.data());
  constexpr std::array<std::uint8_t, 3> jpeg{0xFF, 0xD8, 0xFF};
  constexpr std::array<std::uint8_t, 4> png{0x89, 'P', 'N', 'G'};
  const auto begins_with = [&](const auto& magic) {
    return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
  };
  if (begins_with(jpeg)) return decode_jpeg(bytes, file.name(), channels);
  if (begins_with(png)) return decode_png(bytes, file.name(), channels);
  fail("{}: got {} expected a JPEG or PNG image. it is damaged or another format", file.name(),
       bytes.empty() ? "an empty file" : "a file that begins otherwise");
}

void check_size(const std::string& name, std::int64_t height, std::int64_t width) {
  constexpr std::int64_t most = std::int64_t{1} << 28;
  if (height <= 0 || width <= 0 || height > most / width)
    fail("{}: got an image of {}x{} pixels expected at most {} in all", name, width, height, most);
}

void to_grey(Image& image) {
  std::uint8_t* to = image.pixels.data();
  const std::uint8_t* from = to;
  for (std::int64_t i = 0; i < image.height * image.width; ++i, from += 3)
    *to++ = static_cast<std::uint8_t>((from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + 0x8000) >> 16);
  image.channels = 1;
  image.pixels.resize(static_cast<std::size_t>(image.height * image.width));
}

Image resize(const Image& image, std::int64_t height, std::int64_t width) {
  Image wide = width == image.width ? image : resize_rows(image, width);
  return height == image.height ? wide : resize_columns(wide, height);
}

Image cut_middle(const Image& image, std::int64_t height, std::int64_t width) {
  ensure(height <= image.height && width <= image.width, "a window larger than its image");
  // torchvision: round((image − window) / 2), halves to the even neighbour
  const auto top = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(image.height - height) / 2));
  const auto left = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(image.width - width) / 2));
  Image out{height, width, image.channels, {}};
  const std::int64_t row = width * image.channels;
  out.pixels.resize(static_cast<std::size_t>(height * row));
  for (std::int64_t y = 0; y < height; ++y)
    std::memcpy(out.pixels.data() + y * row, image.pixels.data() + ((top + y) * image.width + left) * image.channels,
                static_cast<std::size_t>(row));
  return out;
}

} // namespace soybean::data
