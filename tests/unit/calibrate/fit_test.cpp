// From measured kernels to figures: machines that are known are found again.
#include "calibrate/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace soybean::calibrate {
namespace {

using machine::Precision;

machine::Processor known() {
  machine::Processor p{.launch = 2e-6, .memory_bandwidth = 1e10, .cache = 1 << 20, .cache_bandwidth = 8e10};
  p.bandwidths["lrn"] = {{1e5, 5e8}, {1e6, 1e9}};
  machine::Rates& rates = p.rates[static_cast<std::size_t>(Precision::fp32)];
  rates = {.peak = 2e11, .products = 1e11, .convolutions = 2e11, .arithmetic = 2e11};
  rates.operators["dense"] = {{1e6, 2e10}, {1e9, 1e11}};
  rates.operators["conv2d"] = {{1e6, 2e11}};
  return p;
}

machine::Setting setting_of(const machine::Processor& processor) {
  machine::Machine machine;
  machine.processor = processor;
  machine.links = {{"bus", 0, 1e-6, 1e9, machine::Per::all}};
  return machine::make_setting(machine, {}, Precision::fp32);
}

Sample sample(const machine::Processor& processor, const std::string& op, double flops, double bytes) {
  const machine::Amount amount{flops, bytes};
  return {op, amount, machine::kernel_seconds(setting_of(processor), op, amount)};
}

struct Measured {
  std::vector<Sample> kernels, sweep;
};

Measured measured(const machine::Processor& processor) {
  Measured m;
  for (const char* op : {"relu", "lrn", "sgd_update"})
    for (const double bytes : {16.0, 64e3, 1e6}) m.kernels.push_back(sample(processor, op, bytes / 8, bytes));
  for (const double flops : {1e6, 31.6e6, 1e9}) {
    m.kernels.push_back(sample(processor, "dense", flops, 1e4));
    m.kernels.push_back(sample(processor, "conv2d", flops, 1e4));
  }
  for (double bytes = 32768; bytes <= 1 << 28; bytes *= 2)
    m.sweep.push_back(sample(processor, "relu", bytes / 8, bytes));
  return m;
}

TEST(Fit, FindsAKnownProcessorAgain) {
  const Measured m = measured(known());

  const machine::Processor found = fit_processor(m.kernels, m.sweep, Precision::fp32);

  EXPECT_NEAR(found.launch, 2e-6, 1e-7);
  EXPECT_NEAR(found.memory_bandwidth, 1e10, 2e8);
  EXPECT_NEAR(found.cache_bandwidth, 8e10, 2e9);
  EXPECT_GE(found.cache, 1 << 20);
  EXPECT_LE(found.cache, 1 << 22);
  EXPECT_NEAR(found.bandwidths.at("lrn").back().rate, 1e9, 2e7);
  EXPECT_NEAR(found.bandwidths.at("lrn").front().rate, 5e8, 1e7);
  EXPECT_FALSE(found.bandwidths.contains("relu"));
  const machine::Rates& rates = found.rates[static_cast<std::size_t>(Precision::fp32)];
  EXPECT_NEAR(rates.convolutions, 2e11, 5e9);
  EXPECT_NEAR(rates.products, 1e11, 2e9);
  EXPECT_NEAR(rates.peak, 2e11, 5e9);
  const machine::Setting before = setting_of(known()), after = setting_of(found);
  for (const Sample& s : m.kernels)
    EXPECT_NEAR(machine::kernel_seconds(after, s.op, s.amount), s.seconds, 0.05 * s.seconds) << s.op;
  EXPECT_NEAR(machine::kernel_seconds(after, "dense", {1e8, 1e4}), machine::kernel_seconds(before, "dense", {1e8, 1e4}),
              1e-4);
}

TEST(Fit, ProductsThatMemoryLimitsSayNothingOfTheRate) {
  Measured m = measured(known());
  for (Sample& s : m.kernels)
    if (s.op == "dense" && s.amount.flops < 1e8) s = sample(known(), "dense", s.amount.flops, 1e9); // 0.1 s of memory

  const machine::Processor found = fit_processor(m.kernels, m.sweep, Precision::fp32);

  EXPECT_EQ(found.rates[static_cast<std::size_t>(Precision::fp32)].operators.at("dense").size(), 1);
  EXPECT_NEAR(found.rates[static_cast<std::size_t>(Precision::fp32)].products, 1e11, 2e9);
}

TEST(Fit, NoiseNeverMakesMoreWorkTakeLess) {
  Measured m = measured(known());
  for (Sample& s : m.kernels)
    if (s.op == "conv2d" && s.amount.flops < 2e6) s.seconds *= 1000; // something else ran

  const machine::Processor found = fit_processor(m.kernels, m.sweep, Precision::fp32);

  double before = 0;
  for (double flops = 1e5; flops < 1e10; flops *= 1.5) {
    const double seconds = machine::kernel_seconds(setting_of(found), "conv2d", {flops, 0});
    EXPECT_GE(seconds, before * (1 - 1e-9));
    before = seconds;
  }
  EXPECT_NEAR(before, sample(known(), "conv2d", 1e5 * std::pow(1.5, 28), 0).seconds, 0.05 * before);
}

TEST(Fit, AHostHasWhatItsRanksReachTogether) {
  const machine::Processor host = of_host(known(), 4);
  machine::Machine machine;
  machine.processor = host;
  machine.links = {{"bus", 0, 1e-6, 1e9, machine::Per::all}};
  const machine::Setting four = machine::make_setting(machine, {{4}}, Precision::fp32), one = setting_of(known());
  for (const char* op : {"dense", "conv2d", "lrn", "relu"})
    for (const double amount : {1e3, 1e6, 3e8})
      EXPECT_NEAR(machine::kernel_seconds(four, op, {amount, amount}),
                  machine::kernel_seconds(one, op, {amount, amount}), 1e-9)
          << op;
}

TEST(Fit, BatchesTakeAStartAndABandwidth) {
  const machine::Batch batch = fit_batch({1e4, 3e-5}, {1e6, 1.02e-3});
  EXPECT_NEAR(batch.seconds, 2e-5, 1e-10);
  EXPECT_NEAR(batch.bandwidth, 1e9, 1);
  EXPECT_EQ(fit_batch({1e4, 3e-5}, {1e6, 2e-5}), (machine::Batch{3e-5, 0})); // noise alone sets them apart
  EXPECT_EQ(fit_batch({1e5, 1e-5}, {1e6, 9e-4}).seconds, 0);                 // never less than nothing
  EXPECT_EQ(of_host(machine::Batch{2e-5, 1e9}, 4), (machine::Batch{2e-5, 4e9}));
}

TEST(Fit, OtherPrecisionsGetRatesAlone) {
  const Measured m = measured(known());
  const machine::Rates rates = fit_rates(known(), m.kernels);
  EXPECT_NEAR(rates.convolutions, 2e11, 5e9);
  EXPECT_GT(rates.arithmetic, 0);
  EXPECT_LE(rates.arithmetic, rates.peak);
}

} // namespace
} // namespace soybean::calibrate
