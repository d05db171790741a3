#pragma once
// What a run shows while it trains: on a terminal one line that renews itself, elsewhere plain lines. Rank 0 only.
#include <chrono>
#include <cstdint>
#include <string>

namespace soybean::train {

struct ProgressLine {
  std::int64_t step = 0; ///< steps done
  double epoch = 0;      ///< epochs done, with fraction
  double loss = 0, accuracy = 0;
  double samples_per_second = 0;
};

class Progress {
public:
  /// Plain lines come every `log_every` steps and at the last one.
  Progress(std::int64_t first_step, std::int64_t last_step, std::int64_t log_every);

  void show(const ProgressLine& line);
  /// Prints a line of its own (validation, checkpoints) without disturbing the bar.
  void note(const std::string& text);
  void finish();

private:
  void erase();

  std::int64_t first_, last_, log_every_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point begin_, last_draw_;
};

/// "1:05:09", "4:07", "0:03".
std::string duration_text(double seconds);

/// "  accuracy  93.1 %" with so many decimals; empty when there is none (NaN).
std::string accuracy_text(double accuracy, int decimals);

/// For printing: a NaN loses its sign ("nan", never "-nan"), other numbers stay as they are.
double plain(double number);

} // namespace soybean::train
