#pragma once
// Images as files hold them: JPEG and PNG decoded to 8 bits, resized and cut. Hides libjpeg and libpng. Used by the
// reader of image folders.
#include "data/bytes.hpp"

#include <cstdint>
#include <vector>

namespace soybean::data {

/// Rows from the top, pixels from the left, channels of a pixel side by side.
struct Image {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels;
};

/// Decodes a JPEG or PNG file, told by its first bytes, to 1 (grey) or 3 (red, green, blue) channels, as Pillow's
/// convert("L") and convert("RGB") do: grey is 0.299 R + 0.587 G + 0.114 B, transparency is dropped, palettes are
/// looked up, CMYK is taken for inverted as Adobe writes it; of 16 bits the upper 8 count. EXIF's orientation is not
/// looked at. Throws Error naming the file when it is another format, damaged or truncated, or has more than 2^28
/// pixels.
Image decode_image(const Bytes& file, std::int64_t channels);

/// Resizes as Pillow does with BILINEAR: a triangle as wide as the scale where the image becomes smaller, horizontally
/// first, rounded to 8 bits in between.
Image resize(const Image& image, std::int64_t height, std::int64_t width);

/// The window of that size around the middle, as torchvision's CenterCrop. The image is at least as large.
Image cut_middle(const Image& image, std::int64_t height, std::int64_t width);

// For decode_image: one source each.
Image decode_jpeg(const std::vector<std::uint8_t>& file, const std::string& name, std::int64_t channels);
Image decode_png(const std::vector<std::uint8_t>& file, const std::string& name, std::int64_t channels);
/// Throws Error for an image without pixels or with more than 2^28.
void check_size(const std::string& name, std::int64_t height, std::int64_t width);
/// One grey channel of three of colour.
void to_grey(Image& image);

} // namespace soybean::data
