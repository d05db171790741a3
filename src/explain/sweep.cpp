#include "explain/sweep.hpp"

#include "base/error.hpp"
#include "explain/costed.hpp"
#include "plan/words.hpp"
#include "simulate/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

namespace soybean::explain {
namespace {

constexpr int most_ranks = 1 << 20;

std::optional<int> read_count(std::string_view text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 1 || value > most_ranks) return std::nullopt;
  return value;
}

double rate(const SweepPoint& point) {
  return static_cast<double>(point.batch) / predicted(point.plans[0].step).seconds;
}

double efficiency(const SweepPoint& point, const SweepPoint& first) {
  return rate(point) / point.ranks / (rate(first) / first.ranks);
}

/// "3.20" times the first plan's; "-" where that moves nothing.
std::string ratio(const SweepPoint& point, std::size_t plan) {
  if (point.plans[0].bytes == 0) return "-";
  return fmt::format("{:.2f}",
                     static_cast<double>(point.plans[plan].bytes) / static_cast<double>(point.plans[0].bytes));
}

double speed_up(const SweepPoint& point) {
  return predicted(point.plans[1].step).seconds / predicted(point.plans[0].step).seconds;
}

std::string csv_times(const simulate::Step& step) {
  return fmt::format("{:.6g},{:.6g},{:.6g},{:.6g}", step.seconds,
                     std::accumulate(step.computing.begin(), step.computing.end(), 0.0), step.packing, step.waiting);
}

} // namespace

std::string sweep_head(const SweepPoint& first) {
  if (!first.plans[0].step)
    return fmt::format("{:>7} {:>8}  {:>12} {:>12} {:>12}  {:>8} {:>8}  {:>9}\n", "ranks", "batch",
                       first.plans[0].strategy, "data", "model", "data /", "model /", "planning");
  return fmt::format("{:>7} {:>8}  {:>10} {:>12} {:>8} {:>11} {:>5}  {:>10} {:>12} {:>8}  {:>10} {:>12}  {:>9}\n",
                     "ranks", "batch", first.plans[0].strategy, "moved", "waiting", "samples/s", "eff.", "data",
                     "moved", "speed-up", "model", "moved", "planning");
}

std::string sweep_row(const SweepPoint& point, const SweepPoint& first) {
  const SweepPlan &chosen = point.plans[0], &data = point.plans[1], &model = point.plans[2];
  if (!chosen.step)
    return fmt::format("{:>7} {:>8}  {:>12} {:>12} {:>12}  {:>8} {:>8}  {:>7.2f} s  {}\n", point.ranks, point.batch,
                       plan::bytes_text(chosen.bytes), plan::bytes_text(data.bytes), plan::bytes_text(model.bytes),
                       ratio(point, 1), ratio(point, 2), point.planning_seconds, point.status);
  return fmt::format("{:>7} {:>8}  {:>10} {:>12} {:>6.1f} % {:>11.1f} {:>5.2f}  {:>10} {:>12} {:>8.2f}  {:>10} {:>12}  "
                     "{:>7.2f} s  {}\n",
                     point.ranks, point.batch, plan::seconds_text(predicted(chosen.step).seconds),
                     plan::bytes_text(chosen.bytes),
                     100 * predicted(chosen.step).waiting / predicted(chosen.step).seconds, rate(point),
                     efficiency(point, first), plan::seconds_text(predicted(data.step).seconds),
                     plan::bytes_text(data.bytes), speed_up(point), plan::seconds_text(predicted(model.step).seconds),
                     plan::bytes_text(model.bytes), point.planning_seconds, point.status);
}

std::string sweep_csv_head() {
  return "ranks,batch,strategy,status,bytes,data_bytes,model_bytes,seconds,computing,packing,waiting,"
         "samples_per_second,efficiency,data_seconds,data_computing,data_packing,data_waiting,model_seconds,"
         "model_computing,model_packing,model_waiting,speedup,planning_seconds\n";
}

std::string sweep_csv_row(const SweepPoint& point, const SweepPoint& first) {
  const SweepPlan &chosen = point.plans[0], &data = point.plans[1], &model = point.plans[2];
  const std::string begin = fmt::format("{},{},{},{},{},{},{},", point.ranks, point.batch, chosen.strategy,
                                        point.status, chosen.bytes, data.bytes, model.bytes);
  if (!chosen.step) return fmt::format("{},,,,,,,,,,,,,,,{:.3g}\n", begin, point.planning_seconds);
  return begin + fmt::format("{},{:.6g},{:.4g},{},{},{:.4g},{:.3g}\n", csv_times(predicted(chosen.step)), rate(point),
                             efficiency(point, first), csv_times(predicted(data.step)),
                             csv_times(predicted(model.step)), speed_up(point), point.planning_seconds);
}

std::vector<int> read_rank_counts(const std::string& text) {
  std::vector<int> counts;
  bool good = true;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const std::optional<int> first = read_count(std::string_view(text).substr(0, dots)),
                             last = read_count(std::string_view(text).substr(dots + 2));
    good = first && last && *first <= *last;
    if (good) {
      for (int count = *first; count < *last; count *= 2) counts.push_back(count);
      counts.push_back(*last);
    }
  } else {
    for (std::size_t begin = 0; good && begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      const std::optional<int> count = read_count(std::string_view(text).substr(begin, end - begin));
      good = count && (counts.empty() || counts.back() < *count);
      if (good) counts.push_back(*count);
      begin = end + 1;
    }
  }
  if (!good)
    fail("--sweep: got \"{}\" expected rank counts from 1 to {} that ascend. 1..1024 stands for 1, 2, 4, … 1024; "
         "others are listed: 1,2,6",
         text, most_ranks);
  return counts;
}

} // namespace soybean::explain
