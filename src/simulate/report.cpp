#include "simulate/report.hpp"

#include "plan/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace soybean::simulate {
namespace {

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

std::string layer_row(std::string_view name, const LayerSeconds& layer, double whole) {
  const double sum = layer.computing + layer.packing + layer.waiting;
  return fmt::format("  {:<24}{:>12}{:>12}{:>12}{:>8.1f} %\n", name, plan::seconds_text(layer.computing),
                     plan::seconds_text(layer.packing), plan::seconds_text(layer.waiting), percent(sum, whole));
}

} // namespace

std::string summary(const machine::Setting& setting, std::int64_t batch, const Step& step, const Step& data) {
  const double peak = setting.machine.rates(setting.precision).peak * setting.processor_share / setting.turns;
  std::string text =
      fmt::format("predicted on {}: {} per step, {:.1f} samples/s, {:.2f} times data parallelism ({})\n",
                  setting.machine.name, plan::seconds_text(step.seconds), static_cast<double>(batch) / step.seconds,
                  data.seconds / step.seconds, plan::seconds_text(data.seconds));
  text += fmt::format("  forward {:.1f} %, backward {:.1f} %, update {:.1f} %, packing {:.1f} %, waiting for transfers "
                      "{:.1f} % ({} of {} hidden); {:.1f} % of the processor's peak\n",
                      percent(step.computing[0], step.seconds), percent(step.computing[1], step.seconds),
                      percent(step.computing[2], step.seconds), percent(step.packing, step.seconds),
                      percent(step.waiting, step.seconds),
                      plan::seconds_text(std::max(0.0, step.transferring - step.waiting)),
                      plan::seconds_text(step.transferring), percent(step.flops, step.seconds * peak));
  if (step.reading > 0) text += fmt::format("  reading the batch {:.1f} %\n", percent(step.reading, step.seconds));
  return text;
}

std::string report(const machine::Setting& setting, const graph::Graph& graph, std::int64_t batch, const Step& step,
                   const Step& data) {
  std::string text = summary(setting, batch, step, data);
  text += fmt::format("  {:<24}{:>12}{:>12}{:>12}{:>10}\n", "layer", "computing", "packing", "waiting", "of step");
  for (std::size_t layer = 0; layer < step.layers.size(); ++layer) {
    const LayerSeconds& seconds = step.layers[layer];
    if (seconds.computing + seconds.packing + seconds.waiting == 0) continue;
    text += layer_row(layer < graph.layers.size() ? graph.layers[layer].name : "(others)", seconds, step.seconds);
  }
  return text;
}

std::vector<std::pair<std::string, double>> figures(const Step& step, std::int64_t batch) {
  return {{"seconds", step.seconds},          {"samples_per_second", static_cast<double>(batch) / step.seconds},
          {"forward", step.computing[0]},     {"backward", step.computing[1]},
          {"update", step.computing[2]},      {"packing", step.packing},
          {"reading", step.reading},          {"waiting", step.waiting},
          {"transferring", step.transferring}};
}

} // namespace soybean::simulate
