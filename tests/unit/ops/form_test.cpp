#include "unit/ops/helpers.hpp"

#include "ops/form.hpp"
#include "tiling/mesh.hpp"
#include "tiling/tiling.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using namespace soybean::ops;
using graph::Graph;
using graph::TensorId;

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

struct Row {
  std::string form, notes;
};

/// The table of src/ops/README.md by operator.
std::map<std::string, Row> documented() {
  std::ifstream file(std::string(SOYBEAN_SOURCE_DIR) + "/src/ops/README.md");
  std::map<std::string, Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| ") || line.starts_with("| operator")) continue;
    std::vector<std::string> cells;
    for (std::size_t at = 1; at < line.size();) {
      const std::size_t end = std::min(line.find('|', at), line.size());
      cells.push_back(trimmed(line.substr(at, end - at) + " "));
      at = end + 1;
    }
    for (std::size_t at = 0; at != std::string::npos;) {
      const std::size_t end = cells[0].find(", ", at);
      rows[cells[0].substr(at, end - at)] = {cells[3], cells[4]};
      at = end == std::string::npos ? end : end + 2;
    }
  }
  return rows;
}

std::string split_names(const Form& form) {
  std::string text;
  for (Choice choice : allowed_choices(form))
    if (choice >= 0) text += (text.empty() ? "" : " ") + to_string(form, choice);
  return text;
}

TEST(Form, TheReadmeListsExactlyTheOperatorsOfTheTable) {
  const auto rows = documented();
  EXPECT_EQ(rows.size(), table().size());
  for (const Operator& row : table()) EXPECT_TRUE(rows.contains(std::string(row.name))) << row.name;
}

/// A graph that has the operator.
const Graph& graph_of(const std::string& op) {
  static const Graph images = every_operator(), sequences = every_sequence_operator();
  for (const graph::Node& n : images.nodes)
    if (n.op == op) return images;
  return sequences;
}

TEST(Form, EveryOperatorHasTheFormTheReadmeSays) {
  for (const auto& [op, row] : documented()) {
    std::string expected = replaced(replaced(row.form, "→", "->"), "…", "h w");
    if (op == "softmax_cross_entropy") expected += " 1, 1";
    if (op == "binary_cross_entropy") expected += " 1, 1";
    if (op == "mse" || op == "total_loss") expected += " 1";
    if (expected.starts_with("elementwise")) continue;
    EXPECT_EQ(to_string(form(graph_of(op), first_of(graph_of(op), op))), expected) << op;
  }
}

TEST(Form, ElementwiseOperandsAreAlike) {
  const Graph g = every_operator();
  EXPECT_EQ(to_string(form(g, first_of(g, "relu"))), "b c h w -> b c h w");
  EXPECT_EQ(to_string(form(g, first_of(g, "relu_grad"))), "b c h w, b c h w -> b c h w");
  EXPECT_EQ(to_string(form(g, first_of(g, "dropout"))), "b c h w, . -> b c h w");
  EXPECT_EQ(to_string(form(g, first_of(g, "dropout_grad"))), "b c h w, . -> b c h w");
  EXPECT_EQ(to_string(form(g, first_of(g, "mul"))), "b c h w, b c h w -> b c h w");
  EXPECT_EQ(to_string(form(g, node(g, "fc2.bias_add"))), "b c, c -> b c");
  EXPECT_EQ(to_string(form(g, node(g, "fc2.weight"))), "d0 d1, d0 d1, ., d0 d1 -> d0 d1, d0 d1");
  EXPECT_EQ(to_string(form(g, node(g, "fc2.bias"))), "d0, d0, ., d0 -> d0, d0");
  EXPECT_EQ(to_string(form(g, node(g, "conv1.weight"))),
            "d0 d1 d2 d3, d0 d1 d2 d3, ., d0 d1 d2 d3 -> d0 d1 d2 d3, d0 d1 d2 d3");
}

TEST(Form, NotesSayWhatIsLinearReplicableInPlaceAndTwin) {
  for (const auto& [op, row] : documented()) {
    const Graph& g = graph_of(op);
    const graph::Node& n = first_of(g, op);
    const auto noted = [&](std::string_view word) { return row.notes.find(word) != std::string::npos; };
    EXPECT_EQ(form(g, n).linear, noted("linear")) << op;
    EXPECT_EQ(form(g, n).replicable, noted("replicable")) << op;
    EXPECT_EQ(!find(op).in_place.empty(), noted("in place")) << op;
    EXPECT_EQ(n.twin != graph::none, noted("twin")) << op;
  }
}

/// Operators on images that do not split rows and columns.
bool keeps_images_whole(const std::string& op) {
  for (const char* name : {"pad", "upsample", "reshape", "permute", "flatten", "group_norm", "layer_norm"})
    if (op.starts_with(name)) return true;
  return false;
}

TEST(Form, SplittableIndicesAreBatchChannelsFeaturesRowsAndColumns) {
  const std::map<std::string, std::string> expected = {{"conv2d", "b c o"},
                                                       {"conv2d_grad_input", "b o c"},
                                                       {"conv2d_grad_weight", "b o c"},
                                                       {"dense", "b k n"},
                                                       {"dense_grad_input", "b n k"},
                                                       {"dense_grad_weight", "b n k"},
                                                       {"sgd_update", "d0 d1"},
                                                       {"adam_update", "d0 d1"},
                                                       {"rmsprop_update", "d0 d1"},
                                                       {"lars_update", "d0 d1"},
                                                       {"lamb_direction", "d0 d1"},
                                                       {"lamb_update", "d0 d1"},
                                                       {"sum_of_squares", "d0 d1"},
                                                       {"sum_of_sums", ""},
                                                       {"clip_factor", ""},
                                                       {"softmax_cross_entropy", "b"},
                                                       {"softmax_cross_entropy_grad", "b"},
                                                       {"group_norm", "b g"},
                                                       {"group_norm_grad", "b g"},
                                                       {"group_norm_sums", "b g"},
                                                       {"layer_norm", "b"},
                                                       {"layer_norm_grad", "b"},
                                                       {"layer_norm_sums", "b"},
                                                       {"lrn", "b"},
                                                       {"lrn_grad", "b"},
                                                       {"softmax", "b"},
                                                       {"softmax_grad", "b"},
                                                       {"log_softmax", "b"},
                                                       {"log_softmax_grad", "b"},
                                                       {"bias_grad", "b c"},
                                                       {"running_average", "c"},
                                                       {"global_avg_pool_grad", "b c"},
                                                       {"flatten_grad", "b c"},
                                                       {"concat", "b"},
                                                       {"slice", "b"},
                                                       {"slice_grad", "b"},
                                                       {"reshape", "b"},
                                                       {"total_loss", ""},
                                                       {"softmax_parts", "b k"},
                                                       {"label_logit", "b k"},
                                                       {"label_rank", "b k"},
                                                       {"split_softmax_loss", "b"},
                                                       {"split_softmax_loss_grad", "b k"},
                                                       {"embedding", "b v c h"},
                                                       {"embedding_grad", "b c v h"},
                                                       {"positional_embedding", "b c h"},
                                                       {"positional_embedding_grad", "b c h"},
                                                       {"rotary", "b g h"},
                                                       {"attention", "b g h"},
                                                       {"attention_grad", "b g h"},
                                                       {"rms_norm", "b"},
                                                       {"rms_norm_grad", "b"},
                                                       {"rms_norm_sums", "b"},
                                                       {"conv_transpose2d", "b c o"},
                                                       {"conv_transpose2d_grad_input", "b o c"},
                                                       {"conv_transpose2d_grad_weight", "b c o"}};
  for (const Operator& row : table()) {
    const auto found = expected.find(std::string(row.name));
    const Graph& g = graph_of(std::string(row.name));
    const graph::Node& n = row.name == "sgd_update" ? node(g, "fc2.weight") : first_of(g, row.name);
    std::string names = found == expected.end() ? "b c" : found->second;
    const auto of_images = [&](const std::vector<TensorId>& operands) {
      return !operands.empty() && g.tensors[operands[0]].shape.size() == 4;
    };
    const bool images = (of_images(n.inputs) || of_images(n.outputs)) && n.phase != graph::Phase::update;
    if (images && !keeps_images_whole(n.op) && !names.ends_with(" h")) names += " h w";
    EXPECT_EQ(split_names(form(g, n)), names) << row.name;
  }
}

TEST(Form, SequencesSplitPositionsInProductsAndLosses) {
  const Graph g = every_sequence_operator();
  EXPECT_EQ(to_string(form(g, node(g, "fc"))), "b k h ., n k -> b n h .");
  EXPECT_EQ(split_names(form(g, node(g, "fc"))), "b k n h");
  EXPECT_EQ(to_string(form(g, first_of(g, "dense_grad_input"))), "b n h ., n k -> b k h .");
  EXPECT_EQ(to_string(form(g, first_of(g, "dense_grad_weight"))), "b n h ., b k h . -> n k");
  EXPECT_EQ(to_string(form(g, first_of(g, "softmax_cross_entropy"))), "b k h ., b h, b -> 1, 1");
  EXPECT_EQ(to_string(form(g, first_of(g, "softmax_parts"))), "b k h . -> b k h ., b k h ., b k h .");
  EXPECT_EQ(to_string(form(g, first_of(g, "label_logit"))), "b k h ., b h -> b h");
  EXPECT_EQ(to_string(form(g, first_of(g, "label_rank"))), "b k h ., b h, b h -> b h");
  EXPECT_EQ(to_string(form(g, first_of(g, "split_softmax_loss"))),
            "b . h ., b . h ., b . h ., b h, b h, b, b h -> 1, 1, b h, 1");
  EXPECT_EQ(to_string(form(g, first_of(g, "split_softmax_loss_grad"))), "b k h ., b h, b h, b -> b k h .");
}

TEST(Form, HeadsOfKeysAreTheUnitsOfAttention) {
  const Graph g = every_sequence_operator();
  const Form f = form(g, first_of(g, "attention")); // 4 heads of 2 features, in pairs
  EXPECT_EQ(f.indices[1].count, 2);
  EXPECT_EQ(f.inputs[0][1].unit, 4);
  EXPECT_EQ(f.inputs[1][1].unit, 2);
  EXPECT_EQ(f.outputs[1][1].unit, 2);
}

TEST(Form, OnlyTheSampleIndexIsTheBatch) {
  const Graph g = every_operator();
  for (const graph::Node& n : g.nodes)
    for (const LoopIndex& index : form(g, n).indices) EXPECT_EQ(index.batch, index.name == "b") << n.name;
}

TEST(Form, GroupedConvolutionsSplitBatchAndGroups) {
  Graph g{.name = "grouped"};
  TensorId x = conv2d_layer(g, "a", input_source(g, 4, {3, 5, 5}), {.channels = 6, .kernel = {1, 1}});
  x = conv2d_layer(g, "b", x, {.channels = 12, .kernel = {3, 3}, .groups = 3, .bias = false});
  loss_layer(g, flatten_layer(g, "flat", x));
  add_backward_and_update(g, {});
  const Form f = form(g, node(g, "b"));
  EXPECT_EQ(to_string(f), "b g ~h ~w, g c r s -> b g h w");
  EXPECT_EQ(split_names(f), "b g h w");
  EXPECT_EQ(f.indices[1].count, 3);
  EXPECT_EQ(f.inputs[0][1].unit, 2);
  EXPECT_EQ(f.inputs[1][0].unit, 4);
  EXPECT_EQ(f.outputs[0][1].unit, 4);
  EXPECT_EQ(tensor(g, "b").units, (Shape{1, 4, 1, 1}));
  EXPECT_EQ(to_string(form(g, first_of(g, "conv2d_grad_input"))), "b g ~h ~w, g c r s -> b g h w");
  EXPECT_EQ(to_string(form(g, first_of(g, "conv2d_grad_weight"))), "b g h w, b g ~h ~w -> g c r s");
  EXPECT_EQ(tensor(g, "a.bias_add.grad").units, tensor(g, "a.bias_add").units);
  EXPECT_EQ(tensor(g, "b.weight.grad").units, tensor(g, "b.weight").units);
}

TEST(Form, FlattenedDimsAreCutAtWholeChannels) {
  Graph g{.name = "flat"};
  const TensorId x = flatten_layer(g, "flat", input_source(g, 4, {6, 3, 5}));
  loss_layer(g, dense_layer(g, "fc", x, {.units = 10, .bias = false}));
  EXPECT_EQ(tensor(g, "flat").units, (Shape{1, 15}));
  EXPECT_EQ(tensor(g, "flat").spatial, 15);
  EXPECT_EQ(tensor(g, "fc.weight").units, (Shape{1, 15}));
  EXPECT_EQ(tensor(g, "fc.weight").spatial, 15);
  const Form f = form(g, node(g, "fc"));
  EXPECT_EQ(f.indices[1].name, "k");
  EXPECT_EQ(f.indices[1].count, 6);
  EXPECT_EQ(f.inputs[0][1].unit, 15);
  EXPECT_EQ(f.inputs[1][1].unit, 15);
  EXPECT_EQ(form(g, node(g, "flat")).indices[1].count, 6);
}

TEST(Form, ElementwiseUnitsAreTheLeastCommonMultiple) {
  Graph g{.name = "lcm"};
  const TensorId x = input_source(g, 2, {12, 3, 3});
  const TensorId a = conv2d_layer(g, "a", x, {.channels = 12, .kernel = {1, 1}, .groups = 3, .bias = false});
  const TensorId b = conv2d_layer(g, "b", x, {.channels = 12, .kernel = {1, 1}, .groups = 2, .bias = false});
  add_layer(g, "sum", {a, b});
  EXPECT_EQ(tensor(g, "a").units[1], 4);
  EXPECT_EQ(tensor(g, "b").units[1], 6);
  EXPECT_EQ(tensor(g, "sum").units[1], 12);
  const Form f = form(g, node(g, "sum"));
  EXPECT_EQ(f.inputs[0][1].unit, 12);
  EXPECT_EQ(f.indices[1].count, 1);
}

TEST(Form, UnitsOfAnInputPassThroughAnUngroupedConvolution) {
  Graph g{.name = "pass"};
  TensorId x = input_source(g, 2, {12, 3, 3});
  x = conv2d_layer(g, "a", x, {.channels = 12, .kernel = {1, 1}, .groups = 3, .bias = false});
  x = conv2d_layer(g, "b", x, {.channels = 5, .kernel = {1, 1}, .bias = false});
  loss_layer(g, flatten_layer(g, "flat", x));
  add_backward_and_update(g, {});
  EXPECT_EQ(tensor(g, "b.weight").units, (Shape{1, 4, 1, 1}));
  EXPECT_EQ(tensor(g, "a.grad").units, tensor(g, "a").units);
  EXPECT_EQ(tensor(g, "b.weight.grad").units, tensor(g, "b.weight").units);
}

TEST(Form, GroupUnitsRespectTheUnitsOfTheInput) {
  Graph g{.name = "respect"};
  TensorId x = input_source(g, 2, {12, 3, 3});
  x = conv2d_layer(g, "a", x, {.channels = 12, .kernel = {1, 1}, .groups = 3, .bias = false}); // unit 4
  x = conv2d_layer(g, "b", x, {.channels = 24, .kernel = {1, 1}, .groups = 6, .bias = false}); // groups of 2
  const Form f = form(g, node(g, "b"));
  EXPECT_EQ(f.inputs[0][1].unit, 4);
  EXPECT_EQ(f.inputs[1][0].unit, 8);
  EXPECT_EQ(f.outputs[0][1].unit, 8);
  EXPECT_EQ(f.indices[1].count, 3);
}

std::string tilings_text(const Graph& g, std::string_view name, const tiling::Mesh& mesh,
                         const std::vector<std::string>& names) {
  const graph::Node& n = node(g, name);
  const Form f = form(g, n);
  std::vector<Choice> choices;
  for (const std::string& wanted : names)
    for (Choice c : allowed_choices(f))
      if (to_string(f, c) == wanted) choices.push_back(c);
  const OperandTilings t = operand_tilings(f, g, n, mesh, choices);
  std::string text;
  for (const auto& in : t.inputs) text += tiling::to_string(in) + ' ';
  text += "->";
  for (const auto& out : t.outputs) text.append(" ").append(tiling::to_string(out));
  return text;
}

TEST(OperandTilings, OfConvolutionsFollowTheirForms) {
  const Graph g = every_operator();
  const tiling::Mesh two{{2}};
  EXPECT_EQ(tilings_text(g, "conv1", two, {"b"}), "split(0) replicate -> split(0)");
  EXPECT_EQ(tilings_text(g, "conv1", two, {"o"}), "replicate split(0) -> split(1)");
  EXPECT_EQ(tilings_text(g, "conv1", two, {"c"}), "split(1) split(1) -> partial");
  EXPECT_EQ(tilings_text(g, "conv0.bias_add.grad", two, {"b"}), "split(0) replicate -> split(0)");
  EXPECT_EQ(tilings_text(g, "conv0.bias_add.grad", two, {"o"}), "split(1) split(0) -> partial");
  EXPECT_EQ(tilings_text(g, "conv0.bias_add.grad", two, {"c"}), "replicate split(1) -> split(1)");
  EXPECT_EQ(tilings_text(g, "conv1.weight.grad", two, {"b"}), "split(0) split(0) -> partial");
  EXPECT_EQ(tilings_text(g, "conv1.weight.grad", two, {"o"}), "split(1) replicate -> split(0)");
  EXPECT_EQ(tilings_text(g, "conv1.weight.grad", two, {"c"}), "replicate split(1) -> split(1)");
}

TEST(OperandTilings, OfRowsAndColumnsHaveHalos) {
  Graph g{.name = "halos"};
  TensorId x =
      conv2d_layer(g, "first", input_source(g, 4, {3, 11, 8}), {.channels = 4, .kernel = {1, 1}, .bias = false});
  x = conv2d_layer(g, "conv", x, {.channels = 6, .kernel = {3, 5}, .stride = {2, 1}, .padding = {1, 2}, .bias = false});
  x = pool_layer(g, "pool", "max_pool", x, {.kernel = {3, 2}, .stride = Pair{2, 2}});
  loss_layer(g, dense_layer(g, "fc", flatten_layer(g, "flat", x), {.units = 3}));
  add_backward_and_update(g, {});
  const tiling::Mesh two{{2}};
  // 11 rows, 6 windows; 8 columns, 8 windows
  EXPECT_EQ(tilings_text(g, "first", two, {"h"}), "split(2) replicate -> split(2)"); // kernels of 1 reach no further
  EXPECT_EQ(tilings_text(g, "conv", two, {"h"}), "split(2)+halo(3 stride 2 padding 1) replicate -> split(2)");
  EXPECT_EQ(tilings_text(g, "conv", two, {"w"}), "split(3)+halo(5 padding 2) replicate -> split(3)");
  EXPECT_EQ(tilings_text(g, "first.grad", two, {"h"}), "split(2)+windows(3 stride 2 padding 1) replicate -> split(2)");
  EXPECT_EQ(tilings_text(g, "conv.weight.grad", two, {"h"}), "split(2) split(2)+halo(3 stride 2 padding 1) -> partial");
  // 6 rows, 2 windows; 8 columns, 4 windows side by side
  EXPECT_EQ(tilings_text(g, "pool", two, {"h"}), "split(2)+halo(3 stride 2) -> split(2)");
  EXPECT_EQ(tilings_text(g, "pool", two, {"w"}), "split(3) -> split(3)");
  EXPECT_EQ(tilings_text(g, "conv.grad", two, {"h"}),
            "split(2)+windows(3 stride 2) split(2)+neighbours(3 stride 2) -> split(2)");
  EXPECT_EQ(tilings_text(g, "conv.grad", two, {"w"}), "split(3) split(3) -> split(3)");
}

TEST(OperandTilings, OfDenseLayersFollowTheirForms) {
  const Graph g = every_operator();
  const tiling::Mesh two{{2}};
  EXPECT_EQ(tilings_text(g, "fc2", two, {"b"}), "split(0) replicate -> split(0)");
  EXPECT_EQ(tilings_text(g, "fc2", two, {"n"}), "replicate split(0) -> split(1)");
  EXPECT_EQ(tilings_text(g, "fc2", two, {"k"}), "split(1) split(1) -> partial");
  EXPECT_EQ(tilings_text(g, "fc1.bias_add.grad", two, {"b"}), "split(0) replicate -> split(0)");
  EXPECT_EQ(tilings_text(g, "fc1.bias_add.grad", two, {"n"}), "split(1) split(0) -> partial");
  EXPECT_EQ(tilings_text(g, "fc1.bias_add.grad", two, {"k"}), "replicate split(1) -> split(1)");
  EXPECT_EQ(tilings_text(g, "fc2.weight.grad", two, {"b"}), "split(0) split(0) -> partial");
  EXPECT_EQ(tilings_text(g, "fc2.weight.grad", two, {"n"}), "split(1) replicate -> split(0)");
  EXPECT_EQ(tilings_text(g, "fc2.weight.grad", two, {"k"}), "replicate split(1) -> split(1)");
}

TEST(OperandTilings, AreBuiltCutByCut) {
  const Graph g = every_operator();
  const tiling::Mesh mesh{{2, 2, 2}};
  EXPECT_EQ(tilings_text(g, "fc2", mesh, {"b", "n", "k"}),
            "split(0),replicate,split(1) replicate,split(0),split(1) -> split(0),split(1),partial");
  EXPECT_EQ(tilings_text(g, "fc2", mesh, {"n", "n", "b"}),
            "replicate,replicate,split(0) split(0),split(0),replicate -> split(1),split(1),split(0)");
}

TEST(OperandTilings, OfLossUpdateAndLinearOperators) {
  const Graph g = every_operator();
  const tiling::Mesh two{{2}};
  EXPECT_EQ(tilings_text(g, "classes", two, {"b"}), "split(0) split(0) split(0) -> partial partial");
  EXPECT_EQ(tilings_text(g, "classes", two, {"replicated"}), "replicate replicate replicate -> replicate replicate");
  EXPECT_EQ(tilings_text(g, "fc2.weight", two, {"d1"}), "split(1) split(1) replicate split(1) -> split(1) split(1)");
  EXPECT_EQ(tilings_text(g, "fc2.weight", two, {"replicated"}),
            "replicate replicate replicate replicate -> replicate replicate");
  EXPECT_EQ(tilings_text(g, "add", two, {"linear"}), "partial partial -> partial");
  EXPECT_EQ(tilings_text(g, "drop", two, {"c"}), "split(1) replicate -> split(1)");
  EXPECT_EQ(tilings_text(g, "conv1.bias.grad", two, {"b"}), "split(0) -> partial");
  EXPECT_EQ(tilings_text(g, "conv1.bias.grad", two, {"c"}), "split(1) -> split(0)");
}

TEST(OperandTilings, AreNormalisedByShapeAndMesh) {
  Graph g{.name = "flat"};
  flatten_layer(g, "flat", input_source(g, 4, {6, 3, 5}));
  EXPECT_EQ(tilings_text(g, "flat", {{2}}, {"c"}), "split(1) -> split(1)");    // 45 either way
  EXPECT_EQ(tilings_text(g, "flat", {{4}}, {"c"}), "split(1) -> split(1/15)"); // 1, 2, 1, 2 channels
}

TEST(OperandTilings, RefuseWhatTheFormDoesNotAllow) {
  const Graph g = every_operator();
  const graph::Node& n = node(g, "fc2");
  const Form f = form(g, n);
  EXPECT_EQ(bug_of([&] { operand_tilings(f, g, n, {{2}}, {choose_replicated}); }),
            "node 'fc2' can not do 'replicated' on a cut");
  EXPECT_EQ(bug_of([&] { operand_tilings(f, g, n, {{2}}, {choose_linear}); }),
            "node 'fc2' can not do 'linear' on a cut");
  EXPECT_EQ(bug_of([&] { operand_tilings(f, g, n, {{2, 2}}, {0}); }), "node 'fc2' needs one choice per cut");
}

TEST(Choices, ComeInAFixedOrder) {
  const Graph g = every_operator();
  const auto names = [&](std::string_view name) {
    const Form f = form(g, node(g, name));
    std::string text;
    for (Choice c : allowed_choices(f)) text += to_string(f, c) + " ";
    return text;
  };
  EXPECT_EQ(names("conv1"), "b c o h w ");
  EXPECT_EQ(names("classes"), "b replicated ");
  EXPECT_EQ(names("add"), "b c h w linear ");
  EXPECT_EQ(names("fc2.weight"), "d0 d1 replicated ");
}

} // namespace
