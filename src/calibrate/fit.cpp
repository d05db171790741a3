#include "calibrate/fit.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace soybean::calibrate {
namespace {

using machine::Processor;
using machine::Rates;
using machine::Work;

/// The value below which so large a part of them lies.
double quantile(std::vector<double> values, double part, double of_none) {
  if (values.empty()) return of_none;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size()));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double median(std::vector<double> values, double of_none) {
  return quantile(std::move(values), 0.5, of_none);
}

std::map<std::string, std::vector<Sample>> by_operator(const std::vector<Sample>& samples) {
  std::map<std::string, std::vector<Sample>> groups;
  for (const Sample& sample : samples) groups[sample.op].push_back(sample);
  return groups;
}

/// Beside the launch; a clock that is not fine enough must not make it nothing.
double work_seconds(const Sample& sample, double launch) {
  return std::max(sample.seconds - launch, 0.02 * sample.seconds);
}

/// Of the smallest kernels, the quicker ones: some operators take longer than their launch on a few numbers, too.
double launch_of(const std::vector<Sample>& kernels) {
  constexpr double nothing_bytes = 4096;
  std::vector<double> seconds;
  for (const Sample& sample : kernels)
    if (machine::work_of(sample.op) == Work::arithmetic && sample.amount.bytes <= nothing_bytes)
      seconds.push_back(sample.seconds);
  ensure(!seconds.empty(), "some kernels are so small that they take no longer than their launch");
  return quantile(std::move(seconds), 0.25, 0);
}

void fit_memory(Processor& processor, const std::vector<Sample>& sweep) {
  const auto rate = [&](const Sample& s) { return s.amount.bytes / work_seconds(s, processor.launch); };
  const auto tells = [&](const Sample& s) { return s.seconds >= 2 * processor.launch; };
  double best = 0;
  for (const Sample& sample : sweep)
    if (tells(sample)) best = std::max(best, rate(sample));
  processor.memory_bandwidth = rate(sweep.back());
  constexpr double worth_telling = 1.25;
  if (best < worth_telling * processor.memory_bandwidth) return;
  processor.cache_bandwidth = best;
  for (const Sample& sample : sweep)
    if (tells(sample) && rate(sample) >= std::sqrt(best * processor.memory_bandwidth))
      processor.cache = sample.amount.bytes;
}

/// Bytes/s where nothing but memory limits a kernel.
double memory_rate(const Processor& processor, double bytes) {
  if (processor.cache == 0) return processor.memory_bandwidth;
  const double fitting = std::min(bytes, processor.cache);
  return bytes / (fitting / processor.cache_bandwidth + (bytes - fitting) / processor.memory_bandwidth);
}

/// Rates by sizes a factor of four apart, the median of each. No sample is too fast, some are too slow: a smaller size
/// takes no longer than the next one.
machine::Curve curve_of(const std::vector<machine::Point>& samples) {
  std::map<int, std::vector<machine::Point>> sizes;
  for (const machine::Point& sample : samples)
    sizes[static_cast<int>(std::floor(std::log2(sample.size) / 2))].push_back(sample);
  machine::Curve curve;
  for (auto& [size, points] : sizes) {
    const auto middle = points.begin() + static_cast<std::ptrdiff_t>(points.size() / 2);
    std::nth_element(points.begin(), middle, points.end(),
                     [](const machine::Point& a, const machine::Point& b) { return a.rate < b.rate; });
    curve.push_back(*middle);
  }
  for (std::size_t i = curve.size(); i-- > 1;)
    curve[i - 1].rate = std::max(curve[i - 1].rate, curve[i].rate * curve[i - 1].size / curve[i].size);
  return curve;
}

/// Of operators that memory alone does not explain.
void fit_bandwidths(Processor& processor, const std::vector<Sample>& kernels) {
  constexpr double well_below = 0.9;
  for (const auto& [op, samples] : by_operator(kernels)) {
    if (machine::work_of(op) != Work::arithmetic) continue;
    std::vector<machine::Point> points;
    bool below = false;
    for (const Sample& sample : samples) {
      if (sample.seconds < 1.25 * processor.launch || sample.amount.bytes == 0) continue;
      points.push_back({sample.amount.bytes, sample.amount.bytes / work_seconds(sample, processor.launch)});
      below = below || points.back().rate < well_below * memory_rate(processor, sample.amount.bytes);
    }
    if (below) processor.bandwidths[op] = curve_of(points);
  }
}

/// Of one operator: the rates of its samples, those left out that memory limits (where that leaves any).
machine::Curve fit_curve(const Processor& processor, const std::vector<Sample>& samples) {
  const auto limited = [&](const Sample& s) {
    return s.amount.bytes / memory_rate(processor, s.amount.bytes) > work_seconds(s, processor.launch) / 2;
  };
  const bool all = std::all_of(samples.begin(), samples.end(), limited);
  std::vector<machine::Point> points;
  for (const Sample& sample : samples)
    if (sample.amount.flops > 0 && (all || !limited(sample)))
      points.push_back({sample.amount.flops, sample.amount.flops / work_seconds(sample, processor.launch)});
  return curve_of(points);
}

Rates fit_products(const Processor& processor, const std::vector<Sample>& kernels) {
  Rates rates;
  for (const auto& [op, samples] : by_operator(kernels)) {
    if (machine::work_of(op) == Work::arithmetic) continue;
    rates.operators[op] = fit_curve(processor, samples);
    for (const machine::Point& point : rates.operators[op]) rates.peak = std::max(rates.peak, point.rate);
  }
  ensure(rates.operators.contains("dense") && rates.operators.contains("conv2d"), "both kinds were measured");
  rates.products = rates.operators.at("dense").back().rate;
  rates.convolutions = rates.operators.at("conv2d").back().rate;
  return rates;
}

} // namespace

Processor fit_processor(const std::vector<Sample>& kernels, const std::vector<Sample>& sweep,
                        machine::Precision precision) {
  ensure(!sweep.empty(), "memory was measured");
  Processor processor;
  processor.launch = launch_of(kernels);
  fit_memory(processor, sweep);
  fit_bandwidths(processor, kernels);
  Rates rates = fit_products(processor, kernels);
  rates.arithmetic = rates.peak; // what limits such kernels is their bandwidth
  processor.rates[static_cast<std::size_t>(precision)] = rates;
  return processor;
}

Rates fit_rates(const Processor& processor, const std::vector<Sample>& kernels) {
  Rates rates = fit_products(processor, kernels);
  std::vector<double> arithmetic;
  for (const Sample& sample : kernels)
    if (machine::work_of(sample.op) == Work::arithmetic && sample.seconds > 2 * processor.launch &&
        sample.amount.flops > 0)
      arithmetic.push_back(sample.amount.flops / work_seconds(sample, processor.launch));
  rates.arithmetic = median(std::move(arithmetic), rates.peak);
  rates.peak = std::max(rates.peak, rates.arithmetic);
  return rates;
}

Processor of_host(Processor each, int ranks) {
  each.shared = true;
  for (double* value : {&each.memory_bandwidth, &each.cache, &each.cache_bandwidth}) *value *= ranks;
  const auto enlarge = [&](machine::ByOperator& curves) {
    for (auto& [op, curve] : curves)
      for (machine::Point& point : curve) point = {point.size * ranks, point.rate * ranks};
  };
  enlarge(each.bandwidths);
  for (Rates& rates : each.rates) {
    for (double* value : {&rates.peak, &rates.products, &rates.convolutions, &rates.arithmetic}) *value *= ranks;
    enlarge(rates.operators);
  }
  return each;
}

machine::Batch of_host(machine::Batch each, int ranks) {
  each.bandwidth *= ranks;
  return each;
}

machine::Batch fit_batch(const BatchSample& small, const BatchSample& large) {
  ensure(large.bytes > small.bytes, "two sizes of batches");
  machine::Batch batch;
  if (large.seconds > small.seconds) batch.bandwidth = (large.bytes - small.bytes) / (large.seconds - small.seconds);
  const double reading = batch.bandwidth > 0 ? small.bytes / batch.bandwidth : 0;
  batch.seconds = std::max(0.0, small.seconds - reading);
  return batch;
}

} // namespace soybean::calibrate
