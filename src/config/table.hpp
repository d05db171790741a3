#pragma once
// A table of a TOML document, read through typed getters. Hides toml++, where each value stands in the file, overrides
// from the command line, and which keys were read. Model files and everything else written in TOML are read with it.
//
// Every error reads `model.toml:7: model.layers[2].channels, got "many" (string) expected an integer. <hint>`.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::config {

struct Value;
struct Document;

constexpr std::nullopt_t required = std::nullopt; ///< in place of a fallback: the key must be there

/// What an integer may be. The default upper end keeps products of two from overflowing.
struct Limits {
  std::int64_t low = std::numeric_limits<std::int32_t>::min();
  std::int64_t high = std::numeric_limits<std::int32_t>::max();
};

/// The words a key may hold, and those that are designed but refused as not supported yet.
struct Words {
  std::vector<std::string> now, later = {};
};

/// A handle: cheap to copy, keeps the document alive. Getters take a key of this table; all throw Error when the value
/// is missing (with `required`), of another type or out of range. Where a value is missing but a key of the same table
/// or of the root is much like one that is not there, that key is the error.
class Table {
public:
  /// Parses a document; `file` is what errors call it. Throws Error with file and line for anything that is not TOML.
  static Table parse(const std::string& text, const std::string& file);
  /// `train.steps=100`: sets a key of any table below this one, making tables that are missing; `layers[2].units=5`
  /// reaches into arrays. The value is TOML, a bare word counts as a string. To be called on the root before anything
  /// is read (it invalidates other handles). Throws Error naming `--set <assignment>`.
  void apply_override(const std::string& assignment);

  std::int64_t integer(std::string_view key, std::optional<std::int64_t> fallback, Limits limits = {}) const;
  double real(std::string_view key, std::optional<double> fallback) const; ///< finite; integers are accepted
  bool boolean(std::string_view key, std::optional<bool> fallback) const;
  std::string text(std::string_view key, std::optional<std::string> fallback) const;
  std::string word(std::string_view key, std::optional<std::string> fallback, const Words& words) const;
  std::vector<std::int64_t> integers(std::string_view key, std::optional<std::vector<std::int64_t>> fallback,
                                     Limits limits = {}) const;
  std::vector<double> reals(std::string_view key, std::optional<std::vector<double>> fallback) const;
  std::vector<std::string> texts(std::string_view key, std::optional<std::vector<std::string>> fallback) const;
  /// An integer n, meaning [n, n], or a list of two ([height, width]).
  std::array<std::int64_t, 2> pair(std::string_view key, std::optional<std::array<std::int64_t, 2>> fallback,
                                   Limits limits = {}) const;
  /// An integer for all sides, [height, width] for both ends of each, or [top, left, bottom, right].
  std::array<std::int64_t, 4> edges(std::string_view key, std::optional<std::array<std::int64_t, 4>> fallback,
                                    Limits limits = {}) const;
  Table table(std::string_view key) const;               ///< an empty table when absent, so that defaults apply
  std::vector<Table> tables(std::string_view key) const; ///< an array of tables; required
  std::vector<std::vector<Table>> table_lists(std::string_view key) const; ///< an array of such arrays; required

  bool has(std::string_view key) const;       ///< makes the key known, does not read it
  bool is_text(std::string_view key) const;   ///< has the key with a string; the same
  bool has_table(std::string_view key) const; ///< the same, and true for tables alone
  bool has_list(std::string_view key) const;  ///< the same, and true for arrays alone
  std::vector<std::string> keys() const;      ///< all there are, in the order of the file
  /// Which --set the value comes from, in whole or in part: the last one's number, from 1; 0: it is the file's.
  int overridden(std::string_view key) const;
  /// Makes keys known before they are asked for, so that a misspelt one is named when a required value is missing.
  void known(std::initializer_list<std::string_view> keys) const;
  void pass_over(std::string_view key) const; ///< counts as read: another key makes it void
  /// Refuses a key that is designed but not built: "… expected no such key. x is not supported yet"
  void not_yet(std::string_view key) const;

  const std::string& file() const;
  const std::string& where() const;              ///< "model.toml:7", "--set a.b=c"; the bare file for the root
  std::string where(std::string_view key) const; ///< of the value; of the table when absent
  const std::string& path() const { return path_; }
  std::string path(std::string_view key) const; ///< "model.layers[2].channels"
  /// Throws Error: the key's value is not what it should be. `expected` and `hint` complete the sentence.
  [[noreturn]] void reject(std::string_view key, std::string_view expected, std::string_view hint = "") const;

  /// Throws one Error for the keys nobody read, here and below, naming the nearest key that was asked for.
  void report_unread() const;

  /// This table and all below as TOML text, overrides applied; parses back to the same values.
  std::string to_toml() const;

private:
  Table(std::shared_ptr<Document> document, Value* value, std::string path)
      : document_(std::move(document)), value_(value), path_(std::move(path)) {}
  std::vector<Table> tables_in(Value& value, const std::string& path) const;
  const Value* get(std::string_view key) const;
  template<class T>
  T or_missing(std::optional<T> fallback, std::string_view key, std::string_view expected) const;
  [[noreturn]] void missing(std::string_view key, std::string_view expected, std::string_view hint) const;

  std::shared_ptr<Document> document_;
  Value* value_; ///< a table in document_
  std::string path_;
};

/// The known word nearest to `word` by edit distance; empty when none is close enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& known);
/// `Did you mean "relu"?`, or the list of what is known when nothing is close.
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

/// The text of a file. Throws Error if it cannot be read or is larger than 64 MiB.
std::string read_file(const std::string& path);

} // namespace soybean::config
