#include "support/random_graph.hpp"

#include "base/philox.hpp"
#include "ops/arithmetic_layers.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "ops/losses.hpp"
#include "ops/norm_layers.hpp"
#include "ops/sequence_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace soybean::support {
namespace {

using graph::Graph;
using graph::TensorId;
using ops::Pair;

class Generator {
public:
  Generator(std::uint64_t seed, const RandomGraphOptions& options) : seed_(seed), options_(options) {
    graph_.name = fmt::format("random_{}", seed);
    graph_.precision = options.precision;
  }

  Graph make() {
    const std::int64_t batch = between(1, options_.max_batch);
    if (philox::bits({seed_, 0x73657175, 0}, 0) % 8 == 0) {
      sequences(batch);
    } else {
      const TensorId x = chance(80) ? images(batch) : ops::input_source(graph_, batch, {between(1, 11)});
      losses(classifier(x));
    }
    vary_layers();
    if (chance(20) && !has_statistics()) graph_.microbatches = between(2, 3);
    const std::uint64_t kind = philox::bits({seed_, 0x72656370, 0}, 0) % 6; // none for most
    graph_.recompute = options_.recompute.value_or(static_cast<graph::Recompute>(kind < 3 ? kind : 0));
    ops::add_backward_and_update(graph_, optimizer());
    return std::move(graph_);
  }

private:
  /// Uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const std::uint64_t bits = philox::bits({seed_, 0x72616e64, 0}, drawn_++);
    return low + static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::string name(std::string_view op) { return fmt::format("{}_{}", op, ++layers_); }
  const Shape& shape(TensorId x) const { return graph_.tensors[x].shape; }

  std::int64_t common_divisor(std::int64_t a, std::int64_t b) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= std::gcd(a, b); ++d)
      if (std::gcd(a, b) % d == 0) divisors.push_back(d);
    return divisors[between(0, static_cast<std::int64_t>(divisors.size()) - 1)];
  }

  /// Tokens through a transformer, which says of each what follows.
  void sequences(std::int64_t batch) {
    const std::int64_t length = between(1, 7), heads = between(1, 4), width = 2 * between(1, 2);
    TensorId x = ops::tokens_source(graph_, batch, {.length = length, .vocabulary = between(2, 12)});
    const std::string table = name("embedding");
    x = ops::embedding_layer(graph_, table, x, {.embedding_dim = heads * width});
    if (chance(50))
      x = ops::positional_embedding_layer(graph_, name("positions"), x, {.num_embeddings = length + between(0, 2)});
    for (std::int64_t i = between(1, 2); i > 0; --i) {
      x = ops::add_layer(graph_, name("add"), {x, attention(position_norm(x), heads)});
      const TensorId hidden = dense(position_norm(x), between(1, 9));
      x = ops::add_layer(graph_, name("add"),
                         {x, ops::dense_layer(graph_, name("dense"), hidden, {.units = heads * width})});
    }
    x = ops::dense_layer(graph_, name("dense"), x, {.bias = chance(50), .tied = table});
    ops::LossesOptions options{.terms = {{.input = x, .label_smoothing = chance(30) ? 0.1 : 0}}};
    const std::int64_t classes = shape(x)[1];
    std::int64_t parts = between(1, 5);
    while (classes % parts != 0) --parts;
    options.terms[0].parts = parts;
    if (classes > 2 && chance(30)) options.top_k = between(2, classes);
    ops::add_losses(graph_, options);
  }

  /// Biases only of rotated keys: that of others has a gradient of 0 but for rounding.
  TensorId attention(TensorId x, std::int64_t heads) {
    const bool rotated = chance(50);
    return ops::attention_layer(graph_, name("attention"), {x},
                                {.heads = heads,
                                 .kv_heads = common_divisor(heads, heads),
                                 .causal = chance(70),
                                 .rotary = rotated ? 50.0 : 0.0,
                                 .bias = rotated && chance(60)});
  }

  TensorId position_norm(TensorId x) {
    const std::string layer = name("norm");
    const bool affine = chance(70);
    if (chance(50)) return ops::rms_norm_layer(graph_, layer, x, {.eps = 0.1, .affine = affine});
    return ops::layer_norm_layer(graph_, layer, x, {.over = "channels", .eps = 0.1, .affine = affine});
  }

  TensorId images(std::int64_t batch) {
    TensorId x = ops::input_source(graph_, batch, {between(1, 4), between(3, 9), between(3, 9)});
    const std::int64_t layers = between(1, options_.layers);
    x = convolution(x, between(1, 8)); // at least one layer with parameters
    for (std::int64_t i = 1; i < layers; ++i) {
      switch (between(0, 9)) {
      case 9:
        x = norm(x);
        break;
      case 0:
      case 1:
        x = convolution(x, between(1, 8));
        break;
      case 2:
        x = residual(x);
        break;
      case 3:
      case 4:
        x = pool(x);
        break;
      case 5:
        x = joined(x);
        break;
      case 6:
        x = chance(70) ? reordered(x) : transposed(x, between(1, 6));
        break;
      default:
        x = pointwise(x);
      }
    }
    if (chance(20)) x = ops::global_avg_pool_layer(graph_, name("gap"), x);
    const TensorId flat = ops::flatten_layer(graph_, name("flatten"), x);
    if (!chance(10)) return flat;
    return ops::concat_layer(graph_, name("concat"),
                             {flat, ops::dense_layer(graph_, name("dense"), flat, {.units = 3})});
  }

  /// Any legal convolution to so many channels.
  TensorId convolution(TensorId x, std::int64_t channels) {
    ops::Conv2dOptions options{.channels = channels, .bias = chance(60)};
    options.groups = chance(40) ? common_divisor(shape(x)[1], channels) : 1;
    for (int d = 0; d < 2; ++d) {
      const std::int64_t size = shape(x)[2 + d];
      options.padding[d] = between(0, 2);
      options.kernel[d] = between(1, std::min<std::int64_t>(4, size + 2 * options.padding[d]));
      options.stride[d] = between(1, 2);
      const bool room = 2 * (options.kernel[d] - 1) + 1 <= size + 2 * options.padding[d];
      options.dilation[d] = room && chance(25) ? 2 : 1;
    }
    return activation(ops::conv2d_layer(graph_, name("conv"), x, options));
  }

  /// Any legal transposed convolution to so many channels that does not grow too much.
  TensorId transposed(TensorId x, std::int64_t channels) {
    ops::ConvTranspose2dOptions options{.channels = channels, .bias = chance(50)};
    options.groups = chance(40) ? common_divisor(shape(x)[1], channels) : 1;
    for (std::size_t d = 0; d < 2; ++d) {
      const std::int64_t size = shape(x)[2 + d];
      options.kernel[d] = between(1, 3);
      options.stride[d] = size < 6 ? between(1, 2) : 1;
      options.output_padding[d] = between(0, options.stride[d] - 1);
      options.padding[d] = size > 1 ? between(0, (options.kernel[d] - 1) / 2) : 0;
    }
    return activation(ops::conv_transpose2d_layer(graph_, name("transposed"), x, options));
  }

  /// A convolution that keeps the shape.
  TensorId same_convolution(TensorId x) {
    const std::int64_t channels = shape(x)[1], half = between(0, 1);
    ops::Conv2dOptions options{.channels = channels,
                               .kernel = Pair{2 * half + 1, 2 * half + 1},
                               .padding = Pair{half, half},
                               .groups = chance(30) ? common_divisor(channels, channels) : 1,
                               .bias = chance(50)};
    return activation(ops::conv2d_layer(graph_, name("conv"), x, options));
  }

  TensorId residual(TensorId x) {
    TensorId body = same_convolution(x);
    if (chance(40)) body = same_convolution(body);
    if (chance(45)) return binary(x, body);
    if (chance(25)) {
      const TensorId third = same_convolution(x);
      return ops::add_layer(graph_, name("add"), {x, body, third});
    }
    return ops::add_layer(graph_, name("add"), chance(50) ? std::vector{x, body} : std::vector{body, x});
  }

  /// Branches of the same image size joined along channels, then perhaps a range of them.
  TensorId joined(TensorId x) {
    std::vector<TensorId> parts{x};
    for (std::int64_t i = between(1, 2); i > 0; --i) parts.push_back(chance(60) ? same_convolution(x) : pointwise(x));
    if (chance(30)) std::swap(parts.front(), parts.back());
    x = ops::concat_layer(graph_, name("concat"), parts);
    if (!chance(40)) return x;
    const std::int64_t begin = between(0, shape(x)[1] - 1);
    return ops::slice_layer(graph_, name("slice"), x, begin, between(begin + 1, shape(x)[1]));
  }

  /// The image in another order, shape or size.
  TensorId reordered(TensorId x) {
    const std::int64_t c = shape(x)[1], h = shape(x)[2], w = shape(x)[3];
    switch (between(0, 3)) {
    case 0: {
      const std::vector<Shape> orders{{0, 1, 3, 2}, {0, 2, 1, 3}, {0, 3, 1, 2}};
      return ops::permute_layer(graph_, name("permute"), x, orders[static_cast<std::size_t>(between(0, 2))]);
    }
    case 1:
      return ops::reshape_layer(graph_, name("reshape"), x, chance(50) ? Shape{c, w, -1} : Shape{h, c, w});
    case 2:
      return ops::pad_layer(graph_, name("pad"), x, {between(0, 2), between(0, 1), between(0, 1), between(0, 2)});
    default:
      break;
    }
    ops::UpsampleOptions options{.bilinear = chance(60)};
    options.align_corners = options.bilinear && chance(50);
    if (h * w <= 36 && chance(50))
      options.scale = Pair{between(1, 2), between(1, 2)};
    else
      options.size = Pair{between(1, 9), between(1, 9)};
    return ops::upsample_layer(graph_, name("upsample"), x, options);
  }

  TensorId norm(TensorId x) {
    const std::int64_t channels = shape(x)[1];
    const std::string layer = name("norm");
    const bool affine = chance(70);
    switch (between(0, 5)) {
    case 0:
      x = ops::group_norm_layer(graph_, layer, x,
                                {.groups = common_divisor(channels, channels), .eps = 0.1, .affine = affine});
      return shifted(layer, x, affine);
    case 1:
      x = ops::layer_norm_layer(graph_, layer, x,
                                {.over = chance(50) ? "sample" : "channels", .eps = 0.1, .affine = affine});
      return shifted(layer, x, affine);
    case 2:
      if (shape(x).size() == 4)
        return ops::lrn_layer(graph_, name("lrn"), x,
                              {.size = between(1, 5), .alpha = 0.3, .beta = chance(50) ? 0.75 : 0.5});
      [[fallthrough]];
    default:
      if (volume(shape(x)) / channels < 2) return pointwise(x);
      x = ops::batch_norm_layer(graph_, layer, x,
                                {.eps = chance(50) ? 0.1 : 0.01, // what hardly varies is not to be blown up
                                 .momentum = 0.1 * static_cast<double>(between(0, 10)),
                                 .affine = affine});
      return shifted(layer, x, affine);
    }
  }

  /// A norm's result away from 0: what does not vary becomes rounding errors there, whose sign a relu would tell.
  TensorId shifted(const std::string& layer, TensorId x, bool affine) {
    if (!affine) return activation(function("shift", x, {{"by", 0.3}}));
    graph_.tensors[graph::find_tensor(graph_, layer + ".bias")].init = {graph::Init::uniform, 0.5};
    return activation(x);
  }

  TensorId function(const std::string& op, TensorId x, const graph::Attributes& attributes = {}) {
    return ops::arithmetic_layer(graph_, name(op), op, x, attributes);
  }

  /// Functions of one operand, of values kept in their domain and small.
  TensorId arithmetic(TensorId x) {
    const double constant = 0.25 * static_cast<double>(between(1, 6));
    switch (between(0, 7)) {
    case 0:
      return function("scale", x, {{"factor", constant - 1}});
    case 1:
      return function("clamp", x, {{"min", -constant}, {"max", constant}});
    case 2:
      return function("log", function("shift", function("abs", x), {{"by", constant}}));
    case 3:
      return function("sqrt", function("shift", function("abs", x), {{"by", constant}}));
    case 4:
      return function("exp", function("clamp", x, {{"min", -2.0}, {"max", 1.0}}));
    case 5:
      return function("pow", function("shift", function("abs", x), {{"by", 0.5}}), {{"exponent", constant - 1}});
    case 6:
      return ops::softmax_layer(graph_, name("softmax"), chance(50) ? "softmax" : "log_softmax", x);
    default:
      return ops::neg_layer(graph_, name("neg"), x);
    }
  }

  /// x times a parameter with one value per channel.
  TensorId channel_factors(TensorId x) {
    const std::string layer = name("factors");
    const TensorId vector = ops::append_source(graph_, {.name = layer + ".weight",
                                                        .shape = {shape(x)[1]},
                                                        .units = {graph_.tensors[x].units[1]},
                                                        .dtype = graph_.precision,
                                                        .role = graph::Role::parameter,
                                                        .init = {graph::Init::uniform, 1}});
    return ops::binary_layer(graph_, layer, "mul", x, vector);
  }

  /// x and a tensor of its shape, or, of images, one that is repeated.
  TensorId binary(TensorId x, TensorId other) {
    if (chance(15)) x = channel_factors(x);
    if (shape(x).size() == 4 && chance(60)) {
      const std::vector<Shape> choices{{1}, {2, 3}, {1, 2, 3}};
      const Shape& dims = choices[static_cast<std::size_t>(between(0, 2))];
      other = ops::reduce_layer(graph_, name("reduce"), other,
                                {.mean = chance(70), .dims = dims, .keepdim = dims != Shape{2, 3} || chance(50)});
    }
    const std::vector<std::string> ops{"add", "mul", "sub", "div", "maximum", "minimum"};
    const std::string& op = ops[static_cast<std::size_t>(between(0, 5))];
    if (op == "div") other = function("shift", function("abs", other), {{"by", 0.5}});
    if (op == "add") return ops::add_layer(graph_, name(op), {x, other});
    return ops::binary_layer(graph_, name(op), op, x, other);
  }

  TensorId pool(TensorId x) {
    ops::PoolOptions options;
    Pair stride{1, 1};
    for (int d = 0; d < 2; ++d) {
      options.kernel[d] = between(1, std::min<std::int64_t>(3, shape(x)[2 + d]));
      options.padding[d] = between(0, options.kernel[d] / 2);
      stride[d] = between(1, 2);
    }
    if (chance(60)) options.stride = stride;
    options.ceil_mode = chance(30);
    options.count_include_pad = chance(70);
    if (chance(20)) options.edges = ops::Edges{options.padding[0], 0, options.kernel[0] / 2, options.padding[1]};
    const std::string op = chance(50) ? "max_pool" : "avg_pool";
    return ops::pool_layer(graph_, name(op), op, x, options);
  }

  TensorId pointwise(TensorId x) {
    if (chance(30)) return arithmetic(x);
    if (chance(40))
      return ops::dropout_layer(graph_, name("dropout"), x, 0.1 * static_cast<double>(between(0, 6)), seed_);
    const std::string op = any_activation();
    return ops::pointwise_layer(graph_, name(op), op, x);
  }

  /// The activation of a layer, if any.
  TensorId activation(TensorId x) {
    if (chance(40)) return x;
    return ops::activate(graph_, any_activation(), x);
  }
  std::string any_activation() {
    if (chance(40)) return "relu";
    return ops::activations()[static_cast<std::size_t>(
                                  between(0, static_cast<std::int64_t>(ops::activations().size()) - 1))]
        .first;
  }

  TensorId dense(TensorId x, std::int64_t units) {
    return activation(ops::dense_layer(graph_, name("dense"), x, {.units = units, .bias = chance(60)}));
  }

  /// x times a square weight twice: two layers that share it.
  TensorId shared_dense(TensorId x) {
    const std::int64_t features = shape(x)[1];
    const std::string first = name("dense");
    x = ops::dense_layer(graph_, first, x, {.units = features, .bias = false});
    const TensorId weight = graph::find_tensor(graph_, first + ".weight");
    const std::int32_t layer = static_cast<std::int32_t>(graph_.layers.size()) - 1;
    return ops::append(graph_, {.name = first + ".again", .op = "dense", .inputs = {x, weight}, .layer = layer})
        .front();
  }

  TensorId classifier(TensorId x) {
    if (graph_.nodes.size() > 0 && chance(10)) return x; // the image itself is the logits
    const std::int64_t layers = between(1, 3);
    for (std::int64_t i = 1; i < layers; ++i) {
      x = dense(x, between(1, 13));
      if (chance(20)) x = shared_dense(x);
      if (chance(25)) {
        const TensorId other = dense(x, shape(x)[1]);
        x = ops::add_layer(graph_, name("add"), {x, other});
      }
      if (chance(15)) {
        const TensorId gate = dense(x, shape(x)[1]);
        x = binary(gate, x);
      }
      if (chance(25)) x = pointwise(x);
      if (chance(20)) x = norm(x);
    }
    return ops::dense_layer(graph_, name("dense"), x, {.units = between(2, 11), .bias = chance(70)});
  }

  /// Mostly one loss of classes; or one of elements, or several.
  void losses(TensorId x) {
    const std::int64_t classes = shape(x)[1];
    ops::LossesOptions options{.terms = {{.input = x}}};
    ops::LossTerm& main = options.terms[0];
    if (chance(20)) {
      main.op = chance(50) ? "mse" : "binary_cross_entropy";
      if (chance(40)) main.against = ops::Against::targets;
    } else if (chance(20)) {
      main.label_smoothing = 0.1;
    }
    options.mixed = chance(25);
    if (main.op == "softmax_cross_entropy" && graph_.tensors[x].spatial == 1 && chance(40)) {
      std::int64_t parts = between(2, 5);
      while (classes % parts != 0) --parts;
      main.parts = parts;
    }
    if (main.op == "softmax_cross_entropy" && classes > 2 && chance(20)) options.top_k = between(2, classes);
    if (chance(20)) {
      main.name = "main";
      main.weight = chance(50) ? 1 : 0.5;
      const TensorId aux = ops::dense_layer(graph_, name("aux"), x, {.units = classes});
      options.terms.push_back({.name = "aux", .input = aux, .weight = 0.3, .label_smoothing = 0.2});
      if (chance(50))
        options.terms.push_back({.name = "bits", .op = "binary_cross_entropy", .input = aux, .weight = 2});
    }
    ops::add_losses(graph_, options);
  }

  bool has_statistics() const { // of batch norms: not by parts
    return std::any_of(graph_.tensors.begin(), graph_.tensors.end(),
                       [](const graph::Tensor& t) { return t.role == graph::Role::state; });
  }
  bool has_norms() const { // gradients may vanish but for rounding, of which lamb makes whole steps
    return std::any_of(graph_.layers.begin(), graph_.layers.end(),
                       [](const graph::Layer& layer) { return layer.op.ends_with("_norm"); });
  }

  /// Half of them plain SGD; eps large, so that gradients next to 0 are not blown up.
  ops::Optimizer optimizer() {
    static constexpr const char* others[] = {"adam", "adamw", "rmsprop", "lars", "lamb"};
    ops::Optimizer o{.momentum = chance(60) ? 0.9 : 0.0, .weight_decay = chance(40) ? 0.01 : 0.0, .eps = 1e-2};
    o.nesterov = o.momentum != 0 && chance(40);
    if (chance(50)) o.name = others[between(0, has_norms() ? 3 : 4)];
    o.amsgrad = chance(30);
    o.centered = chance(30);
    o.decay_biases = chance(70);
    if (chance(25)) o.clip_norm = 0.3;
    if (chance(25)) o.average_decay = 0.9;
    return o;
  }

  /// Some layers are trained in their own way; the last one with parameters is never frozen.
  void vary_layers() {
    std::int32_t last = graph::none;
    for (const graph::Tensor& tensor : graph_.tensors)
      if (tensor.role == graph::Role::parameter) last = graph_.nodes[tensor.consumers.front()].layer;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(graph_.layers.size()); ++i) {
      graph::Layer& layer = graph_.layers[static_cast<std::size_t>(i)];
      if (chance(10)) layer.lr_scale = 0.5;
      if (chance(10)) layer.weight_decay = 0.02;
      layer.frozen = chance(10) && i != last;
    }
  }

  std::uint64_t seed_;
  RandomGraphOptions options_;
  std::uint64_t drawn_ = 0;
  int layers_ = 0;
  Graph graph_;
};

} // namespace

Graph random_graph(std::uint64_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).make();
}

} // namespace soybean::support
