#include "simulate/report.hpp"

#include "base/error.hpp"
#include "plan/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

namespace soybean::simulate {
namespace {

double computing(const Step& step) {
  return std::accumulate(step.computing.begin(), step.computing.end(), 0.0);
}

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

double rate(const Point& point) {
  return static_cast<double>(point.batch) / point.step.seconds;
}

double efficiency(const Point& point, const Point& first) {
  return rate(point) / point.ranks / (rate(first) / first.ranks);
}

constexpr int most_ranks = 1 << 20;

std::optional<int> read_count(std::string_view text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 1 || value > most_ranks) return std::nullopt;
  return value;
}

std::string layer_row(std::string_view name, const LayerSeconds& layer, double whole) {
  const double sum = layer.computing + layer.packing + layer.waiting;
  return fmt::format("  {:<24}{:>12}{:>12}{:>12}{:>8.1f} %\n", name, seconds_text(layer.computing),
                     seconds_text(layer.packing), seconds_text(layer.waiting), percent(sum, whole));
}

} // namespace

std::string seconds_text(double seconds) {
  if (seconds == 0) return "-";
  if (seconds < 1e-3) return fmt::format("{:.1f} us", 1e6 * seconds);
  return seconds < 1 ? fmt::format("{:.2f} ms", 1e3 * seconds) : fmt::format("{:.2f} s", seconds);
}

std::string report(const machine::Setting& setting, const graph::Graph& graph, std::int64_t batch, const Step& step,
                   const Step& data) {
  const double peak = setting.machine.rates(setting.precision).peak * setting.processor_share;
  std::string text =
      fmt::format("predicted on {}: {} per step, {:.1f} samples/s, {:.2f} times data parallelism ({})\n",
                  setting.machine.name, seconds_text(step.seconds), static_cast<double>(batch) / step.seconds,
                  data.seconds / step.seconds, seconds_text(data.seconds));
  text +=
      fmt::format("  forward {:.1f} %, backward {:.1f} %, update {:.1f} %, packing {:.1f} %, waiting for transfers "
                  "{:.1f} % ({} of {} hidden); {:.1f} % of the processor's peak\n",
                  percent(step.computing[0], step.seconds), percent(step.computing[1], step.seconds),
                  percent(step.computing[2], step.seconds), percent(step.packing, step.seconds),
                  percent(step.waiting, step.seconds), seconds_text(std::max(0.0, step.transferring - step.waiting)),
                  seconds_text(step.transferring), percent(step.flops, step.seconds * peak));
  text += fmt::format("  {:<24}{:>12}{:>12}{:>12}{:>10}\n", "layer", "computing", "packing", "waiting", "of step");
  for (std::size_t layer = 0; layer < step.layers.size(); ++layer) {
    const LayerSeconds& seconds = step.layers[layer];
    if (seconds.computing + seconds.packing + seconds.waiting == 0) continue;
    text += layer_row(layer < graph.layers.size() ? graph.layers[layer].name : "(others)", seconds, step.seconds);
  }
  return text;
}

std::vector<std::pair<std::string, double>> figures(const Step& step, std::int64_t batch) {
  return {{"seconds", step.seconds},      {"samples_per_second", static_cast<double>(batch) / step.seconds},
          {"forward", step.computing[0]}, {"backward", step.computing[1]},
          {"update", step.computing[2]},  {"packing", step.packing},
          {"waiting", step.waiting},      {"transferring", step.transferring}};
}

std::string table_head(const std::string& strategy) {
  return fmt::format("{:>6} {:>8}  {:>10} {:>11} {:>6} {:>9} {:>12}  {:>10} {:>9} {:>12} {:>8} {:>9}\n", "ranks",
                     "batch", strategy, "samples/s", "eff.", "waiting", "moved", "data", "waiting", "moved", "speed-up",
                     "planning");
}

std::string table_row(const Point& point, const Point& first) {
  return fmt::format("{:>6} {:>8}  {:>10} {:>11.1f} {:>6.2f} {:>7.1f} % {:>12}  {:>10} {:>7.1f} % {:>12} {:>8.2f} "
                     "{:>7.2f} s\n",
                     point.ranks, point.batch, seconds_text(point.step.seconds), rate(point), efficiency(point, first),
                     percent(point.step.waiting, point.step.seconds), plan::bytes_text(point.bytes),
                     seconds_text(point.data.seconds), percent(point.data.waiting, point.data.seconds),
                     plan::bytes_text(point.data_bytes), point.data.seconds / point.step.seconds,
                     point.planning_seconds);
}

std::string csv_head() {
  return "ranks,batch,strategy,seconds,computing,packing,waiting,bytes,samples_per_second,efficiency,data_seconds,"
         "data_computing,data_packing,data_waiting,data_bytes,speedup,planning_seconds\n";
}

std::string csv_row(const Point& point, const Point& first) {
  const Step &s = point.step, &d = point.data;
  return fmt::format("{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{},{:.6g},{:.4g},{:.6g},{:.6g},{:.6g},{:.6g},{},{:.4g},"
                     "{:.3g}\n",
                     point.ranks, point.batch, point.strategy, s.seconds, computing(s), s.packing, s.waiting,
                     point.bytes, rate(point), efficiency(point, first), d.seconds, computing(d), d.packing, d.waiting,
                     point.data_bytes, d.seconds / s.seconds, point.planning_seconds);
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
    fail("--simulate: got \"{}\" expected rank counts from 1 to {} that ascend. 1..4096 stands for 1, 2, 4, … 4096; "
         "others are listed: 1,2,6",
         text, most_ranks);
  return counts;
}

} // namespace soybean::simulate
