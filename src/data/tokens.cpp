// Sequences of tokens: plain files of little-endian integers (uint8, uint16, uint32), one token after the other, as
// numpy.ndarray.tofile writes them. Sample i of T tokens begins at token i·T; its labels are the tokens that follow
// each of its own, so that it reads T + 1. The tokens to validate with are a file of their own or the end of the same.
#include "base/error.hpp"
#include "data/bytes.hpp"
#include "data/reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace soybean::data {

namespace {

constexpr std::int64_t chunk = 4096; ///< tokens that are read at a time

struct TokenType {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array token_types{TokenType{"uint8", 1}, TokenType{"uint16", 2}, TokenType{"uint32", 4}};

/// Some of the tokens of a file.
struct Run {
  const Bytes* bytes = nullptr;
  std::int64_t size = 0; ///< bytes of a token
  std::int64_t first = 0, count = 0;

  /// f(token) for `number` tokens from the one at `begin` on.
  template<class F>
  void each(std::int64_t begin, std::int64_t number, F f) const {
    std::array<unsigned char, 4 * chunk> raw;
    for (std::int64_t done = 0; done < number; done += chunk) {
      const std::int64_t now = std::min(chunk, number - done);
      bytes->read((first + begin + done) * size, now * size, raw.data());
      for (std::int64_t i = 0; i < now; ++i) {
        std::uint32_t token = 0;
        for (std::int64_t b = size; b-- > 0;) token = token << 8 | raw[static_cast<std::size_t>(i * size + b)];
        f(token);
      }
    }
  }
};

class TokensReader : public Reader {
public:
  TokensReader(const TokenFiles& files, const Expected& expected) : length_(expected.sample[0]) {
    const auto* type =
        std::find_if(token_types.begin(), token_types.end(), [&](const TokenType& t) { return t.name == files.dtype; });
    ensure(type != token_types.end(), "tokens of an unknown type");
    files_[0] = Bytes::open(files.path);
    std::int64_t train = tokens_of(files_[0], *type);
    runs_[0] = {&files_[0], type->bytes, 0, train};
    if (!files.validation_path.empty()) {
      files_[1] = Bytes::open(files.validation_path);
      runs_[1] = {&files_[1], type->bytes, 0, tokens_of(files_[1], *type)};
    } else if (files.validation_fraction > 0) {
      const auto kept = static_cast<std::int64_t>(std::floor(static_cast<double>(train) * files.validation_fraction));
      runs_[1] = {&files_[0], type->bytes, train - kept, kept};
      runs_[0].count -= kept;
    }
    for (const Run& run : runs_)
      if (run.bytes != nullptr) check(run, expected);
    info_ = {expected.sample, samples_of(runs_[0]), samples_of(runs_[1])};
  }
  TokensReader(const TokensReader&) = delete; // runs point into files
  TokensReader& operator=(const TokensReader&) = delete;

  const Info& info() const override { return info_; }
  void read_inputs(Split, std::span<const std::int64_t>, const Box&, DType, void*) const override {
    throw Bug("numbers of a reader of tokens");
  }
  void read_labels(Split, std::span<const std::int64_t>, std::int32_t*) const override {
    throw Bug("one label of a sequence");
  }

  void read_tokens(Split split, std::span<const std::int64_t> ids, const Box& part, std::int64_t shift,
                   std::int32_t* out) const override {
    for (const std::int64_t id : ids)
      runs_[static_cast<std::size_t>(split)].each(
          id * length_ + part.offsets[0] + shift, part.extents[0],
          [&](std::uint32_t token) { *out++ = static_cast<std::int32_t>(token); });
  }

private:
  static std::int64_t tokens_of(const Bytes& bytes, const TokenType& type) {
    if (bytes.size() % type.bytes != 0)
      fail("{}: got {} bytes expected a multiple of {}, as tokens are {} (data.dtype)", bytes.name(), bytes.size(),
           type.bytes, type.name);
    return bytes.size() / type.bytes;
  }

  std::int64_t samples_of(const Run& run) const { return run.bytes == nullptr ? 0 : (run.count - 1) / length_; }

  void check(const Run& run, const Expected& expected) const {
    if (run.count < length_ + 1)
      fail("{}: got {} tokens to {} with expected at least {}, one more than model.input", run.bytes->name(), run.count,
           &run == &runs_[0] ? "train" : "validate", length_ + 1);
    if (!expected.thorough) return;
    std::int64_t at = run.first;
    run.each(0, run.count, [&](std::uint32_t token) {
      if (token >= expected.vocabulary)
        fail("{}: token {}, got {} expected 0 to {}, below model.vocabulary", run.bytes->name(), at, token,
             expected.vocabulary - 1);
      ++at;
    });
  }

  std::int64_t length_;
  std::array<Bytes, 2> files_;
  std::array<Run, 2> runs_; ///< to train and to validate with
  Info info_;
};

} // namespace

std::unique_ptr<Reader> make_tokens_reader(const TokenFiles& files, const Expected& expected) {
  return std::make_unique<TokensReader>(files, expected);
}

} // namespace soybean::data
