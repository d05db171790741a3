#include "app/folders.hpp"

namespace soybean::app {

std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

std::vector<std::string> machine_folders() {
  std::vector<std::string> folders;
  for (const char* inputs : {SOYBEAN_INSTALLED_INPUTS, "../../inputs"})
    folders.push_back((program_folder() / inputs / "machines").lexically_normal().string());
  return folders;
}

} // namespace soybean::app
