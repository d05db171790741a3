// JPEG by libjpeg (libjpeg-turbo), which reports faults by jumping out of its calls: what is called under `guarded` has
// no destructors.
#include "base/error.hpp"
#include "data/image.hpp"

#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

namespace soybean::data {

namespace {

struct Faults {
  jpeg_error_mgr base; ///< first, so that the library's pointer to it is one to us
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void jump_out(j_common_ptr info) {
  auto* faults = reinterpret_cast<Faults*>(info->err);
  info->err->format_message(info, faults->text);
  std::longjmp(faults->jump, 1);
}

/// Missing and undecodable data are faults; the library would make up grey pixels. Other warnings are about oddities.
void warn(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE)) jump_out(info);
}

class Decoder {
public:
  explicit Decoder(const std::string& name) : name_(name) {
    info_.err = jpeg_std_error(&faults_.base);
    faults_.base.error_exit = jump_out;
    faults_.base.emit_message = warn;
    faults_.base.output_message = [](j_common_ptr) {};
    guarded([&] { jpeg_create_decompress(&info_); });
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Throws Error when the library jumps out of f.
  template<class F>
  void guarded(F&& f) {
    if (setjmp(faults_.jump) == 0)
      f();
    else
      fail("{}: can not be decoded, got '{}' expected a whole JPEG image. it is truncated or damaged", name_,
           static_cast<const char*>(faults_.text));
  }
  jpeg_decompress_struct& info() { return info_; }

private:
  const std::string& name_;
  Faults faults_{};
  jpeg_decompress_struct info_{};
};

/// Inverted CMYK, as Adobe writes it, to colours.
void cmyk_to_rgb(Image& image) {
  const auto product = [](int a, int b) { // a·b/255, rounded
    const int t = a * b + 128;
    return ((t >> 8) + t) >> 8;
  };
  std::uint8_t* to = image.pixels.data();
  const std::uint8_t* from = to;
  for (std::int64_t i = 0; i < image.height * image.width; ++i, from += 4) {
    const int light = from[3]; // of an inverted file: 255 − black
    for (int c = 0; c < 3; ++c) *to++ = static_cast<std::uint8_t>(light - product(255 - from[c], light));
  }
  image.channels = 3;
  image.pixels.resize(static_cast<std::size_t>(3 * image.height * image.width));
}

} // namespace

Image decode_jpeg(const std::vector<std::uint8_t>& file, const std::string& name, std::int64_t channels) {
  Decoder decoder(name);
  jpeg_decompress_struct& info = decoder.info();
  decoder.guarded([&] {
    jpeg_mem_src(&info, const_cast<unsigned char*>(file.data()), static_cast<unsigned long>(file.size()));
    jpeg_read_header(&info, TRUE);
  });
  check_size(name, info.image_height, info.image_width);
  const bool grey = info.jpeg_color_space == JCS_GRAYSCALE && channels == 1;
  const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = grey ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
  decoder.guarded([&] { jpeg_start_decompress(&info); });
  Image image{info.output_height, info.output_width, info.output_components, {}};
  image.pixels.resize(static_cast<std::size_t>(image.height * image.width * image.channels));
  const std::int64_t row = image.width * image.channels;
  std::uint8_t* pixels = image.pixels.data();
  decoder.guarded([&] {
    while (info.output_scanline < info.output_height) {
      JSAMPROW line = pixels + static_cast<std::int64_t>(info.output_scanline) * row;
      jpeg_read_scanlines(&info, &line, 1);
    }
    jpeg_finish_decompress(&info);
  });
  if (cmyk) cmyk_to_rgb(image);
  if (channels == 1 && image.channels == 3) to_grey(image);
  return image;
}

} // namespace soybean::data
