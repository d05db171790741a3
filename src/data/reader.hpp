#pragma once
// Where samples come from. `Reader` is one of the project's two virtual interfaces: one source file per data source,
// one row each in the table of reader.cpp. Used by the loader (training) and by checks before training.
#include "base/types.hpp"
#include "config/options.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::data {

enum class Split : std::uint8_t { train, validation };

struct Info {
  Shape sample;                        ///< shape of one sample, channels first
  std::int64_t train_samples = 0;      ///< >= 1
  std::int64_t validation_samples = 0; ///< 0: no validation
  double white = 1;                    ///< the value of white, where samples are images
};

/// How far an image of a size of its own is made to fit the model's input: not at all, resized so that it covers it, or
/// cut to it as well.
enum class Fit : std::uint8_t { stored, covering, sample };

/// What of a sample is meant.
enum class What : std::uint8_t { inputs, targets };

/// Reads single samples by number. Thread safe. Values are raw: normalisation is the loader's.
class Reader {
public:
  virtual ~Reader() = default;
  virtual const Info& info() const = 0;
  /// For each id in turn the part `part` (a box of the sample's dims) in row-major logical order, as `type` (f32 or
  /// f64).
  virtual void read_inputs(Split split, std::span<const std::int64_t> ids, const Box& part, DType type,
                           void* out) const = 0;
  /// One whole sample, and its shape; only images of a size of their own know another Fit than `sample`.
  virtual Shape read_whole(Split split, std::int64_t id, Fit fit, DType type, std::vector<std::byte>& out) const;
  virtual void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* out) const = 0;
  /// As read_inputs, of the targets; only where Expected::targets asked for them. Labels, too, are there only if it
  /// asked for them.
  virtual void read_targets(Split split, std::span<const std::int64_t> ids, const Box& part, DType type,
                            void* out) const;
  /// For each id the tokens [part + shift] of its sequence, whose last is one beyond the sample: inputs with shift 0,
  /// labels with shift 1. Only of readers of tokens.
  virtual void read_tokens(Split split, std::span<const std::int64_t> ids, const Box& part, std::int64_t shift,
                           std::int32_t* out) const;
  /// Where a sample comes from, for errors: "x_train.npy[17]".
  virtual std::string where(Split split, std::int64_t id, What what) const;
};

/// What the model expects of its data; a reader that reads files checks them against it.
struct Expected {
  Shape sample;
  std::int64_t classes = 0; ///< labels must be in [0, classes)
  std::uint64_t seed = 1;
  bool thorough = true;                        ///< check too what takes long; one rank does it for all
  bool labels = true;                          ///< samples have labels
  std::int64_t vocabulary = 0;                 ///< above 0: samples are sequences of tokens in [0, this)
  std::optional<Shape> targets = std::nullopt; ///< of this shape each: samples have targets
};

/// The names of all sources.
std::vector<std::string_view> source_names();

/// Opens the source named in `[data]`. Throws Error naming file and object when it is missing, damaged or does not fit.
std::unique_ptr<Reader> open_reader(const config::DataOptions& options, const Expected& expected);

/// A prototype per class plus noise per sample id; see synthetic.cpp.
struct Synthetic {
  Shape sample;
  std::int64_t classes = 10;
  std::int64_t train_samples = 1024;
  std::int64_t validation_samples = 0;
  double noise = 1.0; ///< standard deviation of the noise; prototypes have standard deviation 1
  std::uint64_t seed = 1;
  Shape target = {};           ///< shape of a sample's targets, where they are asked for
  std::int64_t vocabulary = 0; ///< above 0: samples are tokens
};
std::unique_ptr<Reader> make_synthetic_reader(const Synthetic& options);

/// `/train/inputs` [N, …], `/train/labels` [N] or `/train/targets` [N, …] or both, and the same under `/validation` if
/// there, of one file after the other. What takes at most `cache_bytes` (as fp32 or fp64) is kept in memory, what is
/// larger is read sample by sample.
std::unique_ptr<Reader> make_hdf5_reader(const std::vector<std::string>& paths, const Expected& expected,
                                         std::int64_t cache_bytes = std::int64_t{256} << 20);

/// Sequences of tokens from plain files; see tokens.cpp.
struct TokenFiles {
  std::string path, validation_path; ///< of the second "": none
  std::string dtype = "uint16";      ///< or "uint32", "uint8"
  double validation_fraction = 0;    ///< of the tokens at the end of `path`
};
std::unique_ptr<Reader> make_tokens_reader(const TokenFiles& files, const Expected& expected);

/// The IDX files of a folder; see idx.cpp, and for the others the file of the same name.
std::unique_ptr<Reader> make_idx_reader(const std::string& folder, const Expected& expected);
/// `labels`: "fine" or "coarse", of CIFAR-100.
std::unique_ptr<Reader> make_cifar_reader(const std::string& folder, const std::string& labels,
                                          const Expected& expected);
std::unique_ptr<Reader> make_npy_reader(const std::string& folder, const Expected& expected);
std::unique_ptr<Reader> make_npz_reader(const std::string& path, const Expected& expected);
/// `resize`: see ImageReader::covering.
std::unique_ptr<Reader> make_image_folder_reader(const std::string& path, std::int64_t resize,
                                                 const Expected& expected);

} // namespace soybean::data
