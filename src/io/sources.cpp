#include "io/sources.hpp"

#include "base/error.hpp"

#include <hdf5.h>

#include <filesystem>
#include <utility>
#include <vector>

namespace soybean::io {

namespace {

/// A source's file and the dataset in it, as the virtual dataset names them.
using Source = std::pair<std::string, std::string>;

/// What a function of the library writes that takes a list, an index, a buffer and its size.
template<ssize_t (*get)(hid_t, std::size_t, char*, std::size_t)>
std::string text_of(hid_t list, std::size_t index) {
  const ssize_t length = get(list, index, nullptr, 0);
  std::string text(length > 0 ? static_cast<std::size_t>(length) + 1 : 1, '\0');
  get(list, index, text.data(), text.size());
  text.pop_back();
  return text;
}

/// Empty for a dataset that is not virtual.
std::vector<Source> sources_of(const File& file, const std::string& name) {
  const std::lock_guard hold(lock());
  std::vector<Source> sources;
  const hid_t dataset = H5Dopen2(file.handle.get(), name.c_str(), H5P_DEFAULT);
  if (dataset < 0) return sources;
  const hid_t list = H5Dget_create_plist(dataset);
  std::size_t count = 0;
  if (H5Pget_layout(list) == H5D_VIRTUAL) H5Pget_virtual_count(list, &count);
  for (std::size_t i = 0; i < count; ++i)
    sources.emplace_back(text_of<H5Pget_virtual_filename>(list, i), text_of<H5Pget_virtual_dsetname>(list, i));
  H5Pclose(list);
  H5Dclose(dataset);
  return sources;
}

bool is_pattern(const std::string& text) {
  return text.find('%') != std::string::npos;
}

} // namespace

void check_sources(const File& file, const std::string& name) {
  namespace fs = std::filesystem;
  for (const auto& [source, dataset] : sources_of(file, name)) {
    if (is_pattern(source) || is_pattern(dataset)) continue;
    if (source == ".") {
      if (!exists(file, dataset))
        fail("{}: {}, got a virtual dataset whose source {} is missing expected all its sources to be there", file.path,
             name, dataset);
      continue;
    }
    fs::path path = source;
    if (!fs::exists(path)) path = fs::path(file.path).parent_path() / path;
    if (!fs::exists(path) || !exists(open_read(path.string()), dataset))
      fail("{}: {}, got a virtual dataset whose source {} in {} is missing expected all its sources to be there. the "
           "file is looked for in the working directory and beside this one",
           file.path, name, dataset, source);
  }
}

} // namespace soybean::io
