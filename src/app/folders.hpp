#pragma once
// Where a program finds what is installed with it. Called by the programs.
#include <filesystem>
#include <string>
#include <vector>

namespace soybean::app {

/// The folder of the program that runs.
std::filesystem::path program_folder();

/// Where machine files lie: in the installation this program is part of, or in the sources it was built from.
std::vector<std::string> machine_folders();

} // namespace soybean::app
