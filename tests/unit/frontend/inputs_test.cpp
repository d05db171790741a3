// The model files under inputs/: all of them parse, have the published sizes, and survive being damaged.
#include "base/error.hpp"
#include "base/philox.hpp"
#include "config/options.hpp"
#include "frontend/toml.hpp"
#include "ops/autodiff.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace soybean;
namespace fs = std::filesystem;
using config::Table;

const std::string inputs = std::string(SOYBEAN_SOURCE_DIR) + "/inputs/";

std::vector<std::string> model_files() {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(inputs))
    if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

struct Read {
  config::RunConfig config;
  graph::Graph graph;
};

Read read_model(const std::string& text, const std::string& file, const std::vector<std::string>& overrides = {}) {
  Table root = Table::parse(text, file);
  for (const std::string& assignment : overrides) root.apply_override(assignment);
  Read read{.config = config::read_run_config(root)};
  read.graph = frontend::build_graph(root.table("model"), read.config.data.batch, read.config.train.precision,
                                     read.config.train.seed);
  root.report_unread();
  return read;
}

Read read_input(const std::string& name, const std::vector<std::string>& overrides = {}) {
  const std::string file = inputs + name + ".toml";
  return read_model(config::read_file(file), file, overrides);
}

TEST(Inputs, AllParseAndResolve) {
  EXPECT_GE(model_files().size(), 11u);
  for (const std::string& file : model_files()) {
    SCOPED_TRACE(file);
    const std::string text = config::read_file(file);
    const Read read = read_model(text, file);
    EXPECT_EQ(read.config.model_name, fs::path(file).stem());
    EXPECT_EQ(read.graph.name, read.config.model_name);
    EXPECT_TRUE(read.config.data.path.empty() || fs::exists(read.config.data.path)) << read.config.data.path;
    const Table root = Table::parse(text, file);
    const std::string resolved = config::resolved_toml(config::read_run_config(root), root);
    EXPECT_EQ(to_string(read_model(resolved, "resolved.toml").graph), to_string(read.graph));
  }
}

/// Multiplications and additions of the forward pass of one sample in convolutions and dense layers, as papers count
/// them.
std::int64_t multiply_adds(const graph::Graph& graph) {
  double flops = 0;
  for (const graph::Node& node : graph.nodes)
    if (node.op == "conv2d" || node.op == "dense") flops += ops::flops(graph, node);
  return static_cast<std::int64_t>(flops / 2) / graph.tensors[graph::find_tensor(graph, "input")].shape[0];
}

// torchvision's, and the papers' where it has no such network.
TEST(Inputs, HaveThePublishedNumbersOfParametersAndProducts) {
  struct Published {
    const char* name;
    std::int64_t parameters, multiply_adds;
  };
  for (const Published& p : {
           Published{"alexnet", 61'100'840, 714'188'480},
           {"cnn5", 188'753'920, 6'794'772'480},
           {"densenet121", 7'978'856, 2'834'161'664},
           {"inception_v1", 13'378'280, 1'591'044'096},
           {"inception_v3", 27'161'264, 5'718'899'296},
           {"lenet", 61'706, 416'520},
           {"mlp4", 268'468'224, 268'435'456},
           {"mobilenet_v2", 3'504'872, 300'774'272},
           {"overfeat", 145'920'872, 2'801'403'904},
           {"resnet152", 60'192'808, 11'513'626'624},
           {"resnet18", 11'689'512, 1'814'073'344},
           {"resnet50", 25'557'032, 4'089'184'256},
           {"squeezenet", 1'248'424, 818'924'576},
           {"vgg11", 132'863'336, 7'609'090'048},
           {"vgg13", 133'047'848, 11'308'466'176},
           {"vgg16", 138'357'544, 15'470'264'320},
           {"vgg19", 143'667'240, 19'632'062'464},
           {"wide_resnet", 68'883'240, 11'398'021'120},
       }) {
    SCOPED_TRACE(p.name);
    const graph::Graph graph = read_input(p.name).graph;
    EXPECT_EQ(graph::parameter_count(graph), p.parameters);
    EXPECT_EQ(multiply_adds(graph), p.multiply_adds);
  }
  EXPECT_EQ(graph::parameter_count(read_input("gpt2_small").graph), 124'439'808);
  EXPECT_EQ(graph::parameter_count(read_input("mlp4", {"model.bias=false"}).graph), std::int64_t{4} * 8192 * 8192);
  EXPECT_EQ(graph::parameter_count(read_input("cnn5", {"model.bias=false"}).graph), std::int64_t{5} * 2048 * 2048 * 9);
}

/// Of the parameters that validation reads.
std::int64_t parameters_outside_auxiliary_heads(const graph::Graph& graph) {
  const std::vector<char> active = graph::active_nodes(graph, false);
  std::int64_t count = 0;
  for (const graph::Tensor& tensor : graph.tensors)
    if (tensor.role == graph::Role::parameter &&
        std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](graph::NodeId n) { return active[n]; }))
      count += volume(tensor.shape);
  return count;
}

TEST(Inputs, HaveAuxiliaryHeadsInTrainingAlone) {
  EXPECT_EQ(parameters_outside_auxiliary_heads(read_input("inception_v1").graph), 6'998'552);
  EXPECT_EQ(parameters_outside_auxiliary_heads(read_input("inception_v3").graph), 23'834'568);
  EXPECT_EQ(parameters_outside_auxiliary_heads(read_input("resnet18").graph), 11'689'512);
}

TEST(Inputs, SmallOnesStayBelowAGigaflopAStep) {
  for (const char* name : {"alexnet_small", "vgg16_small"}) {
    graph::Graph graph = read_input(name).graph;
    ops::add_backward_and_update(graph, {.momentum = 0.9});
    double flops = 0;
    for (graph::Phase phase : {graph::Phase::forward, graph::Phase::backward, graph::Phase::update})
      flops += ops::flops(graph, phase);
    EXPECT_LE(flops, 1e9) << name;
    EXPECT_GE(flops, 1e8) << name;
  }
}

/// A damaged copy: some bytes changed, removed, doubled, or pieces of the file moved about.
std::string damaged(std::string text, std::uint64_t trial) {
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t n) {
    return philox::bits({trial, 1, 0}, draws++) % std::max<std::uint64_t>(n, 1);
  };
  static const std::vector<std::string> pieces = {"[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  "\"",
                                                  "=",
                                                  ",",
                                                  "\n",
                                                  "0",
                                                  "-1",
                                                  "nan",
                                                  "1e999",
                                                  "9223372036854775807",
                                                  "[[x]]",
                                                  "repeat = 3, ",
                                                  "\xff",
                                                  "'''",
                                                  "#",
                                                  "true",
                                                  "1979-05-27",
                                                  "a.b.c"};
  for (std::uint64_t n = 1 + below(4); n > 0; --n) {
    const std::size_t at = below(text.size()), count = 1 + below(8);
    switch (below(5)) {
    case 0:
      text.erase(at, count);
      break;
    case 1:
      text.insert(at, pieces[below(pieces.size())]);
      break;
    case 2:
      text.insert(below(text.size()), text.substr(at, count * 8));
      break;
    case 3:
      if (!text.empty()) text[at] = static_cast<char>(below(256));
      break;
    default:
      text.resize(at);
    }
  }
  return text;
}

TEST(Inputs, DamagedFilesGiveErrorsAndNothingWorse) {
  const std::vector<std::string> texts = {
      config::read_file(inputs + "digits.toml"), config::read_file(inputs + "vgg16_small.toml"),
      "[model]\ninput = [4, 5, 5]\nlayers = [{ repeat = 2, layers = [\n{ op = \"residual\", body = [{ op = \"conv2d\", "
      "channels = 4, kernel = 3, padding = 1 }] }] },\n{ op = \"flatten\" }]\nloss = "
      "\"softmax_cross_entropy\"\n[data]\nsource = \"synthetic\"\nbatch = 2\n[train]\nsteps = 1\n"};
  int errors = 0;
  constexpr std::uint64_t trials = 3000;
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    const std::string text = damaged(texts[trial % texts.size()], trial);
    try {
      const Read read = read_model(text, "damaged.toml");
      graph::verify(read.graph);
    } catch (const Error& error) {
      ++errors;
      const std::string message = error.what();
      EXPECT_EQ(message.rfind("damaged.toml", 0), 0u) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "trial " << trial << ": " << error.what() << "\n" << text;
    }
  }
  EXPECT_GT(errors, 1000);
}

} // namespace
