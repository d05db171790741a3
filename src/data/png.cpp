// PNG by libpng, which reports faults by jumping out of its calls: what is called under `guarded` has no destructors.
#include "base/error.hpp"
#include "data/image.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <png.h>

namespace soybean::data {

namespace {

struct Source {
  const std::uint8_t* at;
  std::size_t left;
};

void take(png_structp png, png_bytep to, std::size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->left) png_error(png, "the file ends too early");
  std::memcpy(to, source->at, count);
  source->at += count;
  source->left -= count;
}

class Decoder {
public:
  explicit Decoder(const std::string& name) : name_(name) {
    png_ = png_create_read_struct(
        PNG_LIBPNG_VER_STRING, text_,
        [](png_structp png, png_const_charp what) {
          auto* text = static_cast<char*>(png_get_error_ptr(png));
          std::strncpy(text, what, text_size - 1);
          png_longjmp(png, 1);
        },
        [](png_structp, png_const_charp) {});
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw std::bad_alloc();
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Throws Error when the library jumps out of f.
  template<class F>
  void guarded(F&& f) {
    if (setjmp(png_jmpbuf(png_)) == 0)
      f();
    else
      fail("{}: can not be decoded, got '{}' expected a whole PNG image. it is truncated or damaged", name_,
           static_cast<const char*>(text_));
  }
  png_structp png() { return png_; }
  png_infop info() { return info_; }

private:
  static constexpr std::size_t text_size = 200;
  const std::string& name_;
  char text_[text_size] = {};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

} // namespace

Image decode_png(const std::vector<std::uint8_t>& file, const std::string& name, std::int64_t channels) {
  Decoder decoder(name);
  png_structp png = decoder.png();
  png_infop info = decoder.info();
  Source source{file.data(), file.size()};
  decoder.guarded([&] {
    png_set_read_fn(png, &source, take);
    png_read_info(png, info);
  });
  check_size(name, png_get_image_height(png, info), png_get_image_width(png, info));
  decoder.guarded([&] {
    const int type = png_get_color_type(png, info);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    if (channels == 3 && !(type & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
  });
  Image image{png_get_image_height(png, info), png_get_image_width(png, info), png_get_channels(png, info), {}};
  const auto row = static_cast<std::int64_t>(png_get_rowbytes(png, info));
  ensure(row == image.width * image.channels, "libpng gave rows of another size");
  image.pixels.resize(static_cast<std::size_t>(image.height * row));
  std::vector<png_bytep> rows(static_cast<std::size_t>(image.height));
  for (std::int64_t y = 0; y < image.height; ++y) rows[static_cast<std::size_t>(y)] = image.pixels.data() + y * row;
  png_bytepp lines = rows.data();
  decoder.guarded([&] {
    png_read_image(png, lines);
    png_read_end(png, nullptr);
  });
  if (channels == 1 && image.channels == 3) to_grey(image);
  return image;
}

} // namespace soybean::data
