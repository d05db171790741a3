// The dnn contract on oneDNN. Activations stay NHWC; weights come and go as plain OIHW and are reordered inside the
// call to the layout the primitive likes best, which costs under a percent. Everything a call needs lies in its
// scratch.
#include "device/dnn.hpp"
#include "base/error.hpp"
#include "device/host/onednn_api.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace soybean::device {

namespace {

using namespace onednn;
using dnnl::memory;

constexpr std::int64_t scratch_alignment = 64;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
}

std::byte* at(void* scratch, std::int64_t offset) {
  return static_cast<std::byte*>(scratch) + offset;
}

/// A tensor of a primitive: the caller's layout and the primitive's, and the reorder between them where they differ.
struct Operand {
  memory user, inner; ///< the same object when the layouts agree
  dnnl::reorder reorder;
  std::int64_t offset = -1; ///< of inner in the scratch; -1: no reorder
  std::unordered_map<int, memory> reorder_args;
};

/// A primitive ready to run: its operands (DNNL_ARG_…), the result last.
struct Entry {
  dnnl::primitive primitive;
  std::string implementation;
  Operand first, second, result;
  memory bias;       ///< unused where there is none
  memory scratchpad; ///< of the primitive and of the reorders: at the start of the scratch
  std::unordered_map<int, memory> args;
  std::int64_t scratch_bytes = 0;
  std::int64_t joined = 1;  ///< so many groups of the convolution are one of the primitive's
  std::int64_t widened = 0; ///< where in the scratch their weights are put together
};

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

/// Puts an operand together; `into`: data goes from user to inner before the primitive, otherwise back after it.
/// Returns the scratchpad its reorder wants.
std::int64_t make_operand(const dnnl::engine& engine, const Desc& user, const Desc& inner, bool into, Operand& out) {
  out.user = memory(user, engine, nullptr);
  if (user == inner) {
    out.inner = out.user;
    return 0;
  }
  out.inner = memory(inner, engine, nullptr);
  const dnnl::primitive_attr attr = user_scratchpad();
  const Desc &from = into ? user : inner, &to = into ? inner : user;
  const dnnl::reorder::primitive_desc desc(engine, from, engine, to, attr);
  out.reorder = dnnl::reorder(desc);
  out.reorder_args = {{DNNL_ARG_FROM, into ? out.user : out.inner}, {DNNL_ARG_TO, into ? out.inner : out.user}};
  out.offset = 0; // placed later
  return static_cast<std::int64_t>(desc.scratchpad_desc().get_size());
}

/// Which arguments a primitive takes and in which layouts.
struct Signature {
  int first = 0, second = 0, result = 0;
  Desc first_user, second_user, result_user;
  Desc first_inner, second_inner, result_inner;
  Desc bias = {}; ///< zero: the primitive takes none
};

Entry make_entry(const dnnl::engine& engine, const dnnl::primitive& primitive, const Desc& scratchpad,
                 const char* implementation, const Signature& s) {
  Entry e;
  e.primitive = primitive;
  e.implementation = implementation;
  auto pad = static_cast<std::int64_t>(scratchpad.get_size());
  pad = std::max(pad, make_operand(engine, s.first_user, s.first_inner, true, e.first));
  pad = std::max(pad, make_operand(engine, s.second_user, s.second_inner, true, e.second));
  pad = std::max(pad, make_operand(engine, s.result_user, s.result_inner, false, e.result));
  const Desc bytes({pad}, memory::data_type::u8, Tag::a);
  e.scratchpad = memory(bytes, engine, nullptr);
  e.scratch_bytes = aligned(pad);
  for (Operand* operand : {&e.first, &e.second, &e.result}) {
    if (operand->offset < 0) continue;
    operand->reorder_args[DNNL_ARG_SCRATCHPAD] = e.scratchpad;
    operand->offset = e.scratch_bytes;
    e.scratch_bytes += aligned(static_cast<std::int64_t>(operand->inner.get_desc().get_size()));
  }
  e.args = {{s.first, e.first.inner},
            {s.second, e.second.inner},
            {s.result, e.result.inner},
            {DNNL_ARG_SCRATCHPAD, e.scratchpad}};
  if (s.bias == Desc()) return e;
  e.bias = memory(s.bias, engine, nullptr);
  e.args[DNNL_ARG_BIAS] = e.bias;
  return e;
}

void place(Operand& operand, const float* data, void* scratch) {
  operand.user.set_data_handle(const_cast<float*>(data));
  if (operand.offset >= 0) operand.inner.set_data_handle(at(scratch, operand.offset));
}

struct Data {
  const float* first = nullptr;
  const float* second = nullptr;
  float* result = nullptr;
  const float* bias = nullptr;
};

void execute(Entry& e, dnnl::stream& stream, const Data& data, void* scratch) {
  ensure(scratch || e.scratch_bytes == 0, "a vendor call without its scratch");
  ensure((data.bias != nullptr) == e.args.contains(DNNL_ARG_BIAS), "a vendor call without its bias");
  if (data.bias != nullptr) e.bias.set_data_handle(const_cast<float*>(data.bias));
  e.scratchpad.set_data_handle(scratch);
  place(e.first, data.first, scratch);
  place(e.second, data.second, scratch);
  place(e.result, data.result, scratch);
  if (e.first.offset >= 0) e.first.reorder.execute(stream, e.first.reorder_args);
  if (e.second.offset >= 0) e.second.reorder.execute(stream, e.second.reorder_args);
  e.primitive.execute(stream, e.args);
  if (e.result.offset >= 0) e.result.reorder.execute(stream, e.result.reorder_args);
  stream.wait();
}

double flops(const Conv& c) {
  const std::int64_t terms = c.weight_size() / c.out_channels;
  return 2.0 * static_cast<double>(c.output_size()) * static_cast<double>(terms);
}

double flops(const Matmul& s) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
}

void zero(float* data, std::int64_t n) {
  if (n > 0) std::memset(data, 0, static_cast<std::size_t>(n) * sizeof(float));
}

/// Layouts of the activations inside a primitive: the caller's, or what the library likes best (and reorders to).
enum class Activations : std::uint8_t { nhwc, any };

/// With AVX-512 NHWC is as fast as anything. The AVX2 kernels run at a half (backward weights: a quarter) of their
/// blocked speed on it, so reorders pay where there is enough work per element moved.
Activations preferred_activations(const Conv& c) {
  const auto isa = static_cast<int>(dnnl::get_effective_cpu_isa());
  const auto avx512 = static_cast<int>(dnnl::cpu_isa::avx512_core);
  const double flops_per_element = flops(c) / static_cast<double>(c.input_size() + c.output_size());
  const bool pays = c.kernel_h * c.kernel_w > 1 && c.in_channels / c.groups >= 8 && flops_per_element >= 200;
  return (isa & avx512) != avx512 && pays ? Activations::any : Activations::nhwc;
}

Desc activation(const Dims& dims, Tag tag) {
  return {dims, memory::data_type::f32, tag};
}

/// The library wants the end padding that its own formula for the output size needs: what stride leaves over is cut.
Dims end_padding(const Conv& c) {
  return {(c.out_height() - 1) * c.stride_h + c.reach_h() - c.height - c.padding_h,
          (c.out_width() - 1) * c.stride_w + c.reach_w() - c.width - c.padding_w};
}

ConvDescs conv_descs(const Conv& c, Activations activations) {
  const Tag tag = activations == Activations::nhwc ? Tag::nhwc : Tag::any;
  const Dims w = c.groups > 1
                     ? Dims{c.groups, c.out_channels / c.groups, c.in_channels / c.groups, c.kernel_h, c.kernel_w}
                     : Dims{c.out_channels, c.in_channels, c.kernel_h, c.kernel_w};
  const std::int64_t oh = c.out_height(), ow = c.out_width();
  return {.x = activation({c.batch, c.in_channels, c.height, c.width}, tag),
          .w = Desc(w, memory::data_type::f32, Tag::any),
          .y = activation({c.batch, c.out_channels, oh, ow}, tag),
          .bias = c.bias ? Desc({c.out_channels}, memory::data_type::f32, Tag::a) : Desc(),
          .strides = {c.stride_h, c.stride_w},
          .dilates = {c.dilation_h - 1, c.dilation_w - 1},
          .padding_begin = {c.padding_h, c.padding_w},
          .padding_end = end_padding(c)};
}

Entry make_conv(const dnnl::engine& engine, const Conv& c, ConvPass pass, Activations activations) {
  const ConvDescs d = conv_descs(c, activations);
  const Desc x = activation({c.batch, c.in_channels, c.height, c.width}, Tag::nhwc);
  const Desc y = activation({c.batch, c.out_channels, c.out_height(), c.out_width()}, Tag::nhwc);
  const Desc w(d.w.dims(), memory::data_type::f32, c.groups > 1 ? Tag::goihw : Tag::oihw);
  const dnnl::primitive_attr attr = user_scratchpad();
  const auto forward = conv_forward_desc(engine, d, attr);
  if (pass == ConvPass::forward)
    return make_entry(engine, ConvForward(forward), forward.scratchpad_desc(), forward.impl_info_str(),
                      {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, x, w, y, forward.src_desc(),
                       forward.weights_desc(), forward.dst_desc(), d.bias});
  if (pass == ConvPass::backward_data) {
    const auto desc = conv_backward_data_desc(engine, d, attr, forward);
    return make_entry(engine, ConvBackwardData(desc), desc.scratchpad_desc(), desc.impl_info_str(),
                      {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC, y, w, x, desc.diff_dst_desc(),
                       desc.weights_desc(), desc.diff_src_desc()});
  }
  const auto desc = conv_backward_weights_desc(engine, d, attr, forward);
  return make_entry(engine, ConvBackwardWeights(desc), desc.scratchpad_desc(), desc.impl_info_str(),
                    {DNNL_ARG_DIFF_DST, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, y, x, w, desc.diff_dst_desc(),
                     desc.src_desc(), desc.diff_weights_desc()});
}

bool is_slow(const Entry& e) {
  return e.implementation.starts_with("ref");
}

/// The convolution with `count` groups made one, the other's channels having zeros for weights.
Conv widened(const Conv& c, std::int64_t count) {
  Conv wide = c;
  wide.groups = c.groups / count;
  return wide;
}

/// Forward passes of groups narrower than a vector fall to products of matrices too small to be worth it (a third to a
/// sixth of the speed). So groups are joined, as few as make eight channels of them.
std::optional<Entry> make_widened(const dnnl::engine& engine, const Conv& c, Activations activations) {
  constexpr std::int64_t vector = 8, most = 16;
  const std::int64_t narrowest = std::min(c.in_channels, c.out_channels) / c.groups;
  for (std::int64_t count = 2; count <= std::min(most, c.groups); ++count) {
    if (c.groups % count != 0 || narrowest * count < vector) continue;
    const Conv wide = widened(c, count);
    Entry entry = make_conv(engine, wide, ConvPass::forward, activations);
    if (is_slow(entry) || entry.implementation.find("gemm") != std::string::npos) continue;
    entry.joined = count;
    entry.widened = entry.scratch_bytes;
    entry.scratch_bytes += aligned(wide.weight_size() * static_cast<std::int64_t>(sizeof(float)));
    return entry;
  }
  return std::nullopt;
}

/// Weights [O][C/groups][R·S] as those of the wider groups.
void widen_weights(const Conv& c, const Conv& wide, const float* w, float* out) {
  const std::int64_t count = c.groups / wide.groups, window = c.kernel_h * c.kernel_w;
  const std::int64_t run = c.in_channels / c.groups * window, outs = c.out_channels / c.groups;
  std::fill_n(out, wide.weight_size(), 0.0f);
  for (std::int64_t o = 0; o < c.out_channels; ++o)
    std::copy_n(w + o * run, run, out + (o * count + o / outs % count) * run);
}

Entry make_matmul(const dnnl::engine& engine, const Matmul& s) {
  const auto matrix = [](std::int64_t rows, std::int64_t columns, bool transposed) {
    return Desc({rows, columns}, memory::data_type::f32, transposed ? Tag::ba : Tag::ab);
  };
  const Desc a = matrix(s.m, s.k, s.a_transposed), b = matrix(s.k, s.n, s.b_transposed), c = matrix(s.m, s.n, false);
  const Desc bias = s.bias ? Desc({1, s.n}, memory::data_type::f32, Tag::ab) : Desc();
  const auto desc = matmul_desc(engine, {a, b, bias, c}, user_scratchpad());
  return make_entry(engine, dnnl::matmul(desc), desc.scratchpad_desc(), desc.impl_info_str(),
                    {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, a, b, c, a, b, c, bias});
}

} // namespace

struct DnnContext::Impl {
  int threads = 1;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<std::pair<Conv, ConvPass>, Entry> convs;
  std::map<Matmul, Entry> matmuls;

  /// The library takes the number of threads from OpenMP when it makes a primitive and when it runs one: all of the
  /// rank's, but one where waking the others would cost as much as the work.
  void use_threads(double flops) const { omp_set_num_threads(flops < 1e6 ? 1 : threads); }

  Entry& conv(const Conv& shape, ConvPass pass) {
    const auto found = convs.find({shape, pass});
    if (found != convs.end()) return found->second;
    use_threads(flops(shape));
    Entry entry = make_conv(engine, shape, pass, preferred_activations(shape));
    if (is_slow(entry)) { // rare shapes: another layout may have a fast implementation
      Entry other = make_conv(engine, shape, pass, Activations::any);
      if (!is_slow(other)) entry = std::move(other);
    }
    if (pass == ConvPass::forward && shape.groups > 1 && entry.implementation.find("gemm") != std::string::npos)
      if (std::optional<Entry> wide = make_widened(engine, shape, preferred_activations(shape)))
        entry = *std::move(wide);
    return convs.emplace(std::pair{shape, pass}, std::move(entry)).first->second;
  }

  Entry& product(const Matmul& shape) {
    const auto found = matmuls.find(shape);
    if (found != matmuls.end()) return found->second;
    use_threads(flops(shape));
    return matmuls.emplace(shape, make_matmul(engine, shape)).first->second;
  }
};

DnnContext::DnnContext(const Exec& exec) : impl_(std::make_unique<Impl>()) {
  omp_set_dynamic(0);
  impl_->threads = exec.threads();
}
DnnContext::~DnnContext() = default;

bool conv_takes_padding(const Conv& conv) {
  const Dims end = end_padding(conv);
  return conv.padding_h >= 0 && conv.padding_w >= 0 && end[0] > -conv.stride_h && end[1] > -conv.stride_w;
}

std::int64_t conv_scratch_bytes(const Exec& exec, const Conv& conv, ConvPass pass) {
  return conv.nothing_to_sum() ? 0 : exec.dnn().impl().conv(conv, pass).scratch_bytes;
}

std::string conv_implementation(const Exec& exec, const Conv& conv, ConvPass pass) {
  return conv.nothing_to_sum() ? "none" : exec.dnn().impl().conv(conv, pass).implementation;
}

namespace {

/// Runs a pass, or clears the result when its sum is empty.
void run_conv(const Exec& exec, const Conv& conv, ConvPass pass, Data data, std::int64_t result_size, void* scratch) {
  ensure(!conv.bias || pass == ConvPass::forward, "a bias in a backward pass");
  if (conv.nothing_to_sum()) {
    ensure(!conv.bias || result_size <= 0, "a bias for empty sums");
    return zero(data.result, result_size);
  }
  DnnContext::Impl& impl = exec.dnn().impl();
  Entry& entry = impl.conv(conv, pass);
  if (entry.joined > 1) {
    auto* weights = reinterpret_cast<float*>(at(scratch, entry.widened));
    widen_weights(conv, widened(conv, entry.joined), data.second, weights);
    data.second = weights;
  }
  impl.use_threads(flops(conv));
  execute(entry, impl.stream, data, scratch);
}

} // namespace

bool conv_takes_bias(const Exec&, const Conv& conv, bool) {
  return !conv.nothing_to_sum();
}

void conv_forward(const Exec& exec, const Conv& conv, const float* x, const float* w, float* y, void* scratch,
                  const float* bias) {
  run_conv(exec, conv, ConvPass::forward, {x, w, y, bias}, conv.output_size(), scratch);
}

void conv_backward_data(const Exec& exec, const Conv& conv, const float* dy, const float* w, float* dx, void* scratch) {
  run_conv(exec, conv, ConvPass::backward_data, {dy, w, dx}, conv.input_size(), scratch);
}

void conv_backward_weights(const Exec& exec, const Conv& conv, const float* dy, const float* x, float* dw,
                           void* scratch) {
  run_conv(exec, conv, ConvPass::backward_weights, {dy, x, dw}, conv.weight_size(), scratch);
}

namespace {

/// Only a product with transposed b or a bias goes through a primitive: elsewhere the library's sgemm is as fast or
/// faster.
bool uses_primitive(const Matmul& s) {
  return (s.b_transposed && !s.a_transposed) || s.bias;
}

bool is_empty(const Matmul& s) {
  return s.m == 0 || s.n == 0 || s.k == 0;
}

} // namespace

std::int64_t matmul_scratch_bytes(const Exec& exec, const Matmul& shape) {
  return is_empty(shape) || !uses_primitive(shape) ? 0 : exec.dnn().impl().product(shape).scratch_bytes;
}

void matmul(const Exec& exec, const Matmul& s, const float* a, const float* b, float* c, void* scratch,
            const float* bias) {
  if (is_empty(s)) {
    ensure(!s.bias || s.m * s.n == 0, "a bias for empty sums");
    return zero(c, s.m * s.n);
  }
  DnnContext::Impl& impl = exec.dnn().impl();
  if (uses_primitive(s)) {
    Entry& entry = impl.product(s);
    impl.use_threads(flops(s));
    return execute(entry, impl.stream, {a, b, c, bias}, scratch);
  }
  impl.use_threads(flops(s));
  const dnnl_status_t status = dnnl_sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, s.k, 1.0f,
                                          a, s.a_transposed ? s.m : s.k, b, s.b_transposed ? s.k : s.n, 0.0f, c, s.n);
  ensure(status == dnnl_success, "dnnl_sgemm refused its arguments");
}

bool offers_thread_products(const Exec&) {
  return true;
}

void thread_product(const Product& s, const float* a, const float* b, float* c) {
  omp_set_num_threads(1); // of the library, should no other thread be at work
  const dnnl_status_t status = dnnl_sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, s.k,
                                          s.factor, a, s.a_row, b, s.b_row, s.adds ? 1.0f : 0.0f, c, s.c_row);
  ensure(status == dnnl_success, "dnnl_sgemm refused its arguments");
}

// Our own kernels move these at the memory's rate already.
bool pool(const Exec&, const Pool&, const float*, float*) {
  return false;
}
bool softmax(const Exec&, const Softmax&, const float*, float*) {
  return false;
}
bool softmax_gradient(const Exec&, const Softmax&, const float*, const float*, float*) {
  return false;
}

} // namespace soybean::device
