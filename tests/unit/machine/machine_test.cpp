// Machine files: what is read, what is refused and how that is said.
#include "machine/machine.hpp"

#include "base/error.hpp"
#include "config/table.hpp"
#include "ops/operator.hpp"
#include "unit/machine/example.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace soybean::machine {
namespace {

template<class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string refusal(const std::string& key, const std::string& line) {
  return error_of([&] { parse_machine(with(example_text(), key, line), "m.toml"); });
}

TEST(Machine, IsReadFromItsFile) {
  const Machine machine = parse_machine(example_text(), "m.toml");

  EXPECT_EQ(machine.name, "example");
  EXPECT_EQ(machine.ranks_per_host, 4);
  EXPECT_EQ(machine.memory, 8'000'000'000);
  EXPECT_EQ(machine.overlap, 0.5);
  EXPECT_FALSE(machine.processor.shared);
  EXPECT_EQ(machine.processor.bandwidths.at("max_pool_grad"), Curve({{1, 5e8}}));
  EXPECT_EQ(machine.rates(Precision::fp32).products, 8e11);
  EXPECT_EQ(machine.rates(Precision::fp32).operators.at("conv2d_grad_weight"), Curve({{1, 4e11}}));
  EXPECT_EQ(machine.rates(Precision::tf32).peak, 0);
  ASSERT_EQ(machine.links.size(), 3);
  EXPECT_EQ(machine.links[1], (Link{"host", 4, 2e-6, 4e9, Per::all}));
  EXPECT_EQ(machine.links[2], (Link{"network", 0, 1e-5, 1e9, Per::group}));
}

TEST(Machine, MayLeaveOutBatchesAndTurns) {
  const Machine without = parse_machine(example_text(), "m.toml");
  const std::string more = "[batch]\nseconds = 2e-5\nbandwidth = 1e9\n";
  const Machine with_all =
      parse_machine(with(example_text(), "launch", "launch = 1e-6\ncores = 2\nturn = 3e-6") + more, "m.toml");

  EXPECT_EQ(without.batch, Batch());
  EXPECT_EQ(without.processor.cores, 0);
  EXPECT_EQ(with_all.batch, (Batch{2e-5, 1e9}));
  EXPECT_EQ(with_all.processor.cores, 2);
  EXPECT_EQ(with_all.processor.turn, 3e-6);
  for (const Machine& machine : {without, with_all}) {
    const Machine again = parse_machine(machine_text(machine), "m.toml");
    EXPECT_EQ(again.batch, machine.batch);
    EXPECT_EQ(again.processor, machine.processor);
  }
}

TEST(Machine, ItsTextReadsBack) {
  Machine machine = parse_machine(example_text(), "m.toml");
  machine.name = "a \"b\" \\";
  machine.processor.launch = 1.25e-6;
  machine.processor.shared = true;
  machine.rates(Precision::fp32).operators["dense"] = {{1e6, 1e10}, {1e9, 4e11}};

  const Machine again = parse_machine(machine_text(machine, {"two", "notes"}), "m.toml");

  EXPECT_EQ(again.name, machine.name);
  EXPECT_EQ(again.ranks_per_host, machine.ranks_per_host);
  EXPECT_EQ(again.memory, machine.memory);
  EXPECT_EQ(again.overlap, machine.overlap);
  EXPECT_EQ(again.processor, machine.processor);
  EXPECT_EQ(again.links, machine.links);
  EXPECT_TRUE(machine_text(machine, {"two", "notes"}).starts_with("# two\n# notes\n"));
}

TEST(Machine, FaultsOfItsFileAreNamed) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"memory", "", "m.toml: memory, got nothing expected a number"},
      {"memory", "memory = -1", "m.toml:3: memory, got -1 (integer) expected a number above 0, in bytes"},
      {"overlap", "overlap = 1.5", "m.toml:4: overlap, got 1.5 (number) expected a fraction from 0 to 1"},
      {"overlap", "overlap = -0.5", "m.toml:4: overlap, got -0.5 (number) expected a number of at least 0"},
      {"overlap", "overlab = 0.5",
       "m.toml:4: unknown key overlab, got 0.5 (number) expected a known key. did you mean \"overlap\"?"},
      {"[processor]", "[elsewhere]", "m.toml:12: processor.launch, got nothing expected a number"},
      {"launch", "launch = \"5 us\"", "m.toml:7: processor.launch, got \"5 us\" (string) expected a number"},
      {"launch", "cores = -1", "m.toml:7: processor.cores, got -1 (integer) expected"},
      {"launch", "launch = 0\nturn = -1", "m.toml:8: processor.turn, got -1 (integer) expected a number of at least 0"},
      {"[processor]", "[batch]\nseconds = -1\n[processor]",
       "m.toml:7: batch.seconds, got -1 (integer) expected a number of at least 0"},
      {"[processor]", "[batch]\nbandwith = 1\n[processor]", "unknown key batch.bandwith"},
      {"memory_bandwidth", "memory_bandwidth = 0",
       "m.toml:8: processor.memory_bandwidth, got 0 (integer) expected a number above 0, in bytes/s"},
      {"cache_bandwidth", "cache_bandwidth = 5",
       "m.toml:10: processor.cache_bandwidth, got 5 (integer) expected a number of at least 1e+09"},
      {"max_pool_grad", "max_pol_grad = 1",
       "processor.bandwidths.max_pol_grad, got 1 (integer) expected an operator's name as key. did you mean "
       "max_pool_grad?"},
      {"products", "products = 2e12",
       "processor.fp32.products, got 2000000000000.0 (number) expected at most the peak, 1e+12. no kernel is faster "
       "than that"},
      {"conv2d_grad_weight", "dense = 2e12", "dense, got 2000000000000.0 (number) expected at most the peak"},
      {"conv2d_grad_weight", "conv2d_grad_weight = [1e6, 1e9, 1e8]",
       "conv2d_grad_weight, got [1000000.0, 1000000000.0, 100000000.0] (array) expected a rate, or size and rate in "
       "turn, by ascending sizes. rates may grow no faster than sizes, else more work would take less time"},
      {"conv2d_grad_weight", "conv2d_grad_weight = [1e8, 1e9, 1e6, 1e8]", "expected a rate, or size and rate in turn"},
      {"conv2d_grad_weight", "conv2d_grad_weight = [1e6, 1e9, 2e6, 3e9]", "rates may grow no faster than sizes"},
      {"conv2d_grad_weight", "dense_grad_input = [1e6, 1e9, 1e10, 2e12]", "expected at most the peak"},
      {"peak", "", "processor.fp32.peak, got nothing expected a number"},
      {"ranks = 4", "ranks = 3",
       "link[1].ranks, got 3 (integer) expected a multiple of the level below's, 2. levels are listed from inner to "
       "outer"},
      {"ranks = 4", "", "link[1].ranks, got nothing expected an integer"},
      {"ranks_per_host", "ranks_per_host = 3",
       "m.toml:2: ranks_per_host, got 3 (integer) expected the ranks of one of the levels of links (2, 4)"},
      {"per = \"all\"", "per = \"host\"", "link[1].per, got \"host\" (string) expected"},
      {"bandwidth = 8e9", "bandwidth = 0", "link[0].bandwidth, got 0 (integer) expected a number above 0, in bytes/s"},
      {"latency = 1e-6", "latency = -1", "link[0].latency, got -1 (integer) expected a number of at least 0"},
      {"name = \"host\"", "names = \"host\"", "link[1].names, got \"host\" (string) expected a known key"},
  };
  for (const auto& [key, line, message] : cases)
    EXPECT_NE(refusal(key, line).find(message), std::string::npos) << line << "\n" << refusal(key, line);

  const std::string no_rates = "name=\"x\"\nmemory=1\noverlap=0\n[processor]\nlaunch=0\nmemory_bandwidth=1\n";
  EXPECT_EQ(error_of([&] { parse_machine(no_rates, "m.toml"); }),
            "m.toml:4: processor, got no rates expected a table of them for a precision. begin with [processor.fp32]");
  EXPECT_EQ(error_of([&] { parse_machine("name=\"x\"\nmemory=1\noverlap=0\n", "m.toml"); }),
            "m.toml: processor, got nothing expected a table [processor]. it holds the rates of a rank's processor");
  EXPECT_EQ(error_of([&] {
              parse_machine(no_rates + "[processor.fp32]\npeak=1\nproducts=1\nconvolutions=1\n"
                                       "arithmetic=1\n",
                            "m.toml");
            }),
            "m.toml: link, got nothing expected a list of tables");
  const std::string no_links =
      "link = []\n" + no_rates + "[processor.fp32]\npeak=1\nproducts=1\nconvolutions=1\narithmetic=1\n";
  EXPECT_NE(error_of([&] { parse_machine(no_links, "m.toml"); }).find("expected at least one level of links"),
            std::string::npos);
}

TEST(Machine, IsFoundByPathOrName) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "soybean_find_machine";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "big-box.toml") << example_text();
  const std::vector<std::string> folders = {(folder / "absent").string(), folder.string()};

  EXPECT_EQ(find_machine("big-box", folders, "here"), (folder / "big-box.toml").string());
  EXPECT_EQ(find_machine("elsewhere/big-box.toml", {}, "here"), "elsewhere/big-box.toml");
  EXPECT_EQ(find_machine("big-box.toml", folders, "here"), "big-box.toml");
  EXPECT_EQ(error_of([&] { find_machine("big-bux", folders, "m.toml:3: machine.file"); }),
            "m.toml:3: machine.file, got \"big-bux\" expected a file or the name of a machine (big-box). did you mean "
            "\"big-box\"?");
  std::filesystem::remove_all(folder);
}

TEST(Machine, PlacesRanksHostByHost) {
  Machine machine = parse_machine(example_text(), "m.toml");
  EXPECT_EQ(ranks_on_hosts(machine, 3), std::vector<int>({3}));
  EXPECT_EQ(ranks_on_hosts(machine, 8), std::vector<int>({4, 4}));
  EXPECT_EQ(ranks_on_hosts(machine, 9), std::vector<int>({4, 4, 1}));
  machine.links.pop_back();
  EXPECT_EQ(error_of([&] { ranks_on_hosts(machine, 5); }),
            "ranks: got 5 expected at most 4, the ranks of machine \"example\" (m.toml). its outermost link says so");
  machine.links.back().ranks = 0;
  machine.ranks_per_host = 0;
  EXPECT_EQ(ranks_on_hosts(machine, 7), std::vector<int>({7}));
}

TEST(Machine, FastAlgorithmsMayPassThePeakInConvolutionsAlone) {
  std::string text = with(example_text(), "convolutions", "convolutions = 2e12");
  text = with(text, "conv2d_grad_weight", "conv2d_grad_weight = 3e12");
  EXPECT_EQ(parse_machine(text, "m.toml").rates(Precision::fp32).convolutions, 2e12);
}

TEST(Machine, RatesBySize) {
  const Curve curve = {{1e6, 1e9}, {1e8, 4e9}};
  EXPECT_EQ(rate_at(curve, 10), 1e9);
  EXPECT_EQ(rate_at(curve, 1e6), 1e9);
  EXPECT_NEAR(rate_at(curve, 1e7), 2e9, 1);
  EXPECT_NEAR(rate_at(curve, 1e8), 4e9, 1);
  EXPECT_EQ(rate_at(curve, 1e12), 4e9);
  EXPECT_EQ(rate_at({{5, 7}}, 1), 7);
}

TEST(Machine, KindsOfWork) {
  EXPECT_EQ(work_of("conv2d_grad_input"), Work::convolutions);
  EXPECT_EQ(work_of("conv_transpose2d"), Work::convolutions);
  EXPECT_EQ(work_of("dense_grad_weight"), Work::products);
  EXPECT_EQ(work_of("relu"), Work::arithmetic);
}

TEST(Machine, EveryFileOfTheInstallationIsRead) {
  const std::filesystem::path folder = std::filesystem::path(SOYBEAN_SOURCE_DIR) / "inputs/machines";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    const std::string path = find_machine(entry.path().stem().string(), {folder.string()}, "here");
    const Machine machine = parse_machine(config::read_file(path), path);
    EXPECT_GT(machine.rates(Precision::fp32).peak, 0) << entry.path();
    for (std::size_t level = 1; level < machine.links.size(); ++level) // outer links are never nearer
      EXPECT_GE(machine.links[level].latency, machine.links[level - 1].latency) << entry.path();
  }
  EXPECT_EQ(files, 7);
}

} // namespace
} // namespace soybean::machine
