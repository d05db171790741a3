#include "train/output.hpp"

#include "train/signals.hpp"

#include <cstdio>

namespace soybean::train {

bool say(const std::string& text) {
  const HearSignals now; // they interrupt a write that waits
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  std::clearerr(stdout);
  return written;
}

} // namespace soybean::train
