#pragma once
// What a run measures: a line of JSON per step in metrics.jsonl, and summary.json at the end. Rank 0 only.
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace soybean::train {

struct StepRecord {
  std::int64_t step = 0; ///< steps done, from 1
  double epoch = 0;
  double loss = 0, accuracy = 0; ///< of the global batch, before the step's update; no accuracy: NaN, null in JSON
  std::vector<std::pair<std::string, double>> more, losses; ///< as in Measures
  double learning_rate = 0;
  std::optional<double> gradient_norm; ///< of all gradients together before clipping, where they are clipped
  double samples_per_second = 0;
  std::int64_t bytes_planned = 0, bytes_moved = 0; ///< all ranks together, control traffic left out
  std::int64_t control_bytes = 0;
  double seconds = 0;                                ///< of the step, slowest rank
  double computing_seconds = 0, waiting_seconds = 0; ///< mean over ranks
  double reading_seconds = 0;                        ///< waiting for the batch, mean over ranks
  std::int64_t peak_memory = 0;                      ///< arena of the fullest rank, bytes
};

struct Validation {
  double loss = 0, accuracy = 0;
  std::vector<std::pair<std::string, double>> more; ///< as in Measures
};

/// The best validation of a run so far, kept in checkpoints.
struct Best {
  std::int64_t step = -1; ///< -1: there was none yet
  Validation validation;
  std::int64_t since = 0; ///< validations after it
  /// Takes note of a validation; true when it is the best one. `by`: "loss" or "accuracy".
  bool take(std::int64_t done, const Validation& v, const std::string& by);
};
std::string to_json(const Best& best);
Best best_from_json(const std::string& text); ///< throws Error

struct Summary {
  std::int64_t steps = 0;
  bool stopped_early = false; ///< train.patience came to its end before the last step
  double final_loss = 0;
  std::optional<Validation> validation;
  std::optional<Best> best; ///< where runs look for it (checkpoint.best, train.patience)
  double samples_per_second = 0;
  std::int64_t bytes_planned_per_step = 0, bytes_moved_per_step = 0;
  std::int64_t peak_memory = 0;
  int ranks = 1;
  std::string strategy;
  std::int64_t microbatches = 1;
  std::string recompute = "none";
};

/// What --eval leaves in evaluation.json.
struct Evaluation {
  std::string checkpoint;
  std::int64_t step = 0; ///< of the checkpoint
  Validation validation;
  std::int64_t samples = 0;
  double seconds = 0;
  int ranks = 1;
  std::string strategy;
};
std::string to_json(const Evaluation& evaluation);

class MetricsFile {
public:
  /// Appends to `path`. Throws Error if that can not be done.
  explicit MetricsFile(const std::string& path);
  void write(const StepRecord& record);
  void write(std::int64_t step, const Validation& validation); ///< a line with "validation"

private:
  void write_line(const std::string& line);
  std::string path_;
  std::ofstream file_;
};

std::string to_json(const Summary& summary);

} // namespace soybean::train
