// The dnn contract on cuDNN and cuBLASLt. Activations stay NHWC; weights come and go as plain OIHW and are transposed
// to OHWI in the scratch. Everything is queued in the Exec's stream; what a call needs lies in its scratch, and plans
// are made once per shape.
#include "device/dnn.hpp"

#include "base/error.hpp"
#include "device/cuda/dnn_context.hpp"
#include "device/stream.hpp"

#include <algorithm>

namespace soybean::device {

using cuda::check;

DnnContext::Impl::Impl(const Exec& exec) : device(exec.device()), math(exec.math()) {
  ensure(exec.on_device(), "convolutions and matrix products of floats on the host, in a build for accelerators");
  cuda::use(device);
  cudnnHandle_t dnn_handle = nullptr;
  check(cudnnCreate(&dnn_handle), "cudnnCreate");
  dnn = Unique<cuda::DnnTraits>(dnn_handle);
  check(cudnnSetStream(dnn_handle, static_cast<cudaStream_t>(exec.stream().native())), "cudnnSetStream");
  cublasLtHandle_t blas_handle = nullptr;
  check(cublasLtCreate(&blas_handle), "cublasLtCreate");
  blas = Unique<cuda::BlasTraits>(blas_handle);
}

cuda::ConvPlan& DnnContext::Impl::conv(const Conv& shape, ConvPass pass) {
  const auto found = convs.find({shape, pass});
  if (found != convs.end()) return found->second;
  cuda::use(device);
  return convs.emplace(std::pair{shape, pass}, make_conv_plan(dnn.get(), shape, pass, math, limits)).first->second;
}

const cuda::ProductPlan& DnnContext::Impl::product(const Matmul& shape) {
  const auto found = products.find(shape);
  if (found != products.end()) return found->second;
  cuda::use(device);
  return products.emplace(shape, cuda::make_product_plan(blas.get(), shape, math)).first->second;
}

cuda::PoolPlan& DnnContext::Impl::pool(const Pool& shape) {
  const auto found = pools.find(shape);
  return found != pools.end() ? found->second : pools.emplace(shape, cuda::make_pool_plan(shape)).first->second;
}

cuda::SoftmaxPlan& DnnContext::Impl::softmax(const Softmax& shape) {
  const auto found = softmaxes.find(shape);
  if (found != softmaxes.end()) return found->second;
  return softmaxes.emplace(shape, cuda::make_softmax_plan(shape)).first->second;
}

DnnContext::DnnContext(const Exec& exec) : impl_(std::make_unique<Impl>(exec)) {}
DnnContext::~DnnContext() = default;

namespace {

bool is_empty(const Matmul& s) {
  return s.m == 0 || s.n == 0 || s.k == 0;
}

void zero(const Exec& exec, float* data, std::int64_t n) {
  exec.stream().zero(data, std::max<std::int64_t>(n, 0) * std::int64_t{sizeof(float)});
}

/// `count` of the convolution's images, as plans are made for them: the same with a bias and without.
Conv images_of(const Conv& conv, std::int64_t count) {
  Conv part = conv;
  part.batch = count;
  part.bias = false;
  return part;
}

std::byte* at(void* scratch, std::int64_t offset) {
  return scratch == nullptr ? nullptr : static_cast<std::byte*>(scratch) + offset;
}

/// A pass as the caller gives it.
struct ConvCall {
  const Conv& conv;
  ConvPass pass;
  const float* first;
  const float* second;
  float* result;
  void* scratch;
  const float* bias = nullptr;
};

/// The call for images [begin, begin + count): weights are whole, gradients of weights add up.
void run_images(DnnContext::Impl& impl, const ConvCall& call, const cuda::ConvOperands& whole, std::int64_t begin,
                std::int64_t count) {
  cuda::ConvPlan& plan = impl.conv(images_of(call.conv, count), call.pass);
  const std::int64_t x = begin * (call.conv.input_size() / call.conv.batch),
                     y = begin * (call.conv.output_size() / call.conv.batch);
  cuda::ConvOperands part = whole;
  part.first += call.pass == ConvPass::forward ? x : y;
  if (call.pass == ConvPass::backward_weights) part.second += x;
  if (call.pass == ConvPass::forward) part.result += y;
  if (call.pass == ConvPass::backward_data) part.result += x;
  if (plan.workspace_bytes == 0) part.workspace = nullptr;
  part.add = call.pass == ConvPass::backward_weights && begin > 0;
  run_conv_plan(impl.dnn.get(), plan, call.pass, part);
}

/// Runs a pass, or clears the result when its sum is empty.
void run_conv(const Exec& exec, const ConvCall& call, std::int64_t result_size) {
  ensure(!call.conv.bias || call.pass == ConvPass::forward, "a bias in a backward pass");
  ensure(call.conv.bias == (call.bias != nullptr), "a convolution without its bias");
  if (call.conv.nothing_to_sum()) {
    ensure(!call.conv.bias || result_size <= 0, "a bias for empty sums");
    return zero(exec, call.result, result_size);
  }
  DnnContext::Impl& impl = exec.dnn().impl();
  cuda::use(impl.device);
  const std::int64_t images = images_per_call(call.conv, impl.limits);
  const cuda::ConvPlan& plan = impl.conv(images_of(call.conv, images), call.pass);
  ensure(call.scratch != nullptr || plan.scratch_bytes() == 0, "a vendor call without its scratch");
  cuda::ConvOperands whole{.first = call.first,
                           .second = call.second,
                           .result = call.result,
                           .bias = call.bias,
                           .workspace = at(call.scratch, plan.weights_bytes)};
  auto* inner_weights = static_cast<float*>(call.scratch);
  const bool makes_weights = call.pass == ConvPass::backward_weights;
  if (plan.transposes && makes_weights) whole.result = inner_weights;
  if (plan.transposes && !makes_weights) {
    bring_weights_in(impl.dnn.get(), plan, call.second, inner_weights);
    whole.second = inner_weights;
  }
  for (std::int64_t begin = 0; begin < call.conv.batch; begin += images)
    run_images(impl, call, whole, begin, std::min(images, call.conv.batch - begin));
  if (plan.transposes && makes_weights) bring_weights_out(impl.dnn.get(), plan, inner_weights, call.result);
}

} // namespace

/// The library takes one padding for both ends of a dim.
bool conv_takes_padding(const Conv& conv) {
  return conv.padding_h >= 0 && conv.padding_w >= 0 && conv.uneven_h == 0 && conv.uneven_w == 0;
}

std::int64_t conv_scratch_bytes(const Exec& exec, const Conv& conv, ConvPass pass) {
  if (conv.nothing_to_sum()) return 0;
  DnnContext::Impl& impl = exec.dnn().impl();
  const std::int64_t images = images_per_call(conv, impl.limits), rest = conv.batch % images;
  std::int64_t bytes = impl.conv(images_of(conv, images), pass).scratch_bytes();
  if (rest > 0) bytes = std::max(bytes, impl.conv(images_of(conv, rest), pass).scratch_bytes());
  return bytes;
}

std::string conv_implementation(const Exec& exec, const Conv& conv, ConvPass pass) {
  if (conv.nothing_to_sum()) return "none";
  DnnContext::Impl& impl = exec.dnn().impl();
  return impl.conv(images_of(conv, images_per_call(conv, impl.limits)), pass).name;
}

/// Where the library's fastest algorithm adds it by itself; a relu takes the bias along.
bool conv_takes_bias(const Exec& exec, const Conv& conv, bool goes_over) {
  if (goes_over || conv.nothing_to_sum()) return false;
  DnnContext::Impl& impl = exec.dnn().impl();
  return impl.conv(images_of(conv, images_per_call(conv, impl.limits)), ConvPass::forward).fuses_bias;
}

void conv_forward(const Exec& exec, const Conv& conv, const float* x, const float* w, float* y, void* scratch,
                  const float* bias) {
  run_conv(exec, {conv, ConvPass::forward, x, w, y, scratch, bias}, conv.output_size());
}

void conv_backward_data(const Exec& exec, const Conv& conv, const float* dy, const float* w, float* dx, void* scratch) {
  run_conv(exec, {conv, ConvPass::backward_data, dy, w, dx, scratch}, conv.input_size());
}

void conv_backward_weights(const Exec& exec, const Conv& conv, const float* dy, const float* x, float* dw,
                           void* scratch) {
  run_conv(exec, {conv, ConvPass::backward_weights, dy, x, dw, scratch}, conv.weight_size());
}

std::int64_t matmul_scratch_bytes(const Exec& exec, const Matmul& shape) {
  return is_empty(shape) ? 0 : exec.dnn().impl().product(shape).workspace_bytes;
}

void matmul(const Exec& exec, const Matmul& shape, const float* a, const float* b, float* c, void* scratch,
            const float* bias) {
  if (is_empty(shape)) {
    ensure(!shape.bias || shape.m * shape.n == 0, "a bias for empty sums");
    return zero(exec, c, shape.m * shape.n);
  }
  DnnContext::Impl& impl = exec.dnn().impl();
  cuda::use(impl.device);
  const cuda::ProductPlan& plan = impl.product(shape);
  ensure(scratch != nullptr || plan.workspace_bytes == 0, "a vendor call without its scratch");
  run_product_plan(impl.blas.get(), plan, {.a = a, .b = b, .c = c, .bias = bias, .workspace = scratch},
                   static_cast<cudaStream_t>(exec.stream().native()));
}

bool offers_thread_products(const Exec&) {
  return false;
}

void thread_product(const Product&, const float*, const float*, float*) {
  throw Bug("a product on a host's thread where kernels run on a device");
}

namespace {

/// The library's handles for tensors of up to that many elements, for one call from now on; nullptr: not for these.
DnnContext::Impl* impl_for(const Exec& exec, std::int64_t elements) {
  if (!exec.on_device() || elements <= 0) return nullptr;
  DnnContext::Impl& impl = exec.dnn().impl();
  if (elements > impl.limits.elements) return nullptr;
  cuda::use(impl.device);
  return &impl;
}

} // namespace

bool pool(const Exec& exec, const Pool& shape, const float* x, float* y) {
  if (shape.output_size() <= 0) return false;
  DnnContext::Impl* impl = impl_for(exec, std::max(shape.input_size(), shape.output_size()));
  return impl != nullptr && run_pool_plan(impl->dnn.get(), impl->pool(shape), x, y);
}

bool softmax(const Exec& exec, const Softmax& shape, const float* x, float* y) {
  DnnContext::Impl* impl = impl_for(exec, shape.rows * shape.width);
  return impl != nullptr && run_softmax_plan(impl->dnn.get(), impl->softmax(shape), x, y);
}

bool softmax_gradient(const Exec& exec, const Softmax& shape, const float* dy, const float* y, float* dx) {
  DnnContext::Impl* impl = impl_for(exec, shape.rows * shape.width);
  return impl != nullptr && run_softmax_gradient(impl->dnn.get(), impl->softmax(shape), dy, y, dx);
}

} // namespace soybean::device
