#include "train/output.hpp"

#include <cstdio>

namespace soybean::train {

void say(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  std::clearerr(stdout);
}

} // namespace soybean::train
