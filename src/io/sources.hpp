#pragma once
// Virtual datasets, whose elements lie in other files. HDF5 reads the fill value where such a file or its dataset is
// missing, so they are looked for first. Called by readers of data.
#include "io/hdf5.hpp"

#include <string>

namespace soybean::io {

/// Throws Error naming the dataset and the first source that is missing, if it is a virtual dataset. Sources named by a
/// pattern (one file per block) are not looked for.
void check_sources(const File& file, const std::string& name);

} // namespace soybean::io
