#pragma once
// The arrays of NumPy, as npy.cpp and npz.cpp find them, and by which names. Private to these readers.
#include "data/array_reader.hpp"

#include <functional>
#include <optional>
#include <string>

namespace soybean::data {

/// An array of the .npy format and its whole shape. Throws Error naming it when it is damaged, truncated, or of
/// elements that are no numbers. Arrays in Fortran order are turned in memory.
struct NamedArray {
  Array array; ///< count, stride and offset set; `sample` not
  Shape shape;
};
NamedArray parse_npy(Bytes bytes);

/// Looks up arrays by the names that are usual for inputs, labels and targets to train and to validate with. `open`
/// gives the array of a name, none where there is none; `where` is what errors call the whole.
std::unique_ptr<Reader> make_named_reader(const std::function<std::optional<Bytes>(const std::string&)>& open,
                                          const std::string& where, const Expected& expected);

} // namespace soybean::data
