#include "train/output.hpp"

#include "train/signals.hpp"

#include <cstdio>

namespace soybean::train {

void say(const std::string& text) {
  const HearSignals now; // they interrupt a write that waits
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  std::clearerr(stdout);
}

} // namespace soybean::train
