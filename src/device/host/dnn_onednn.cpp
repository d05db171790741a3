#include "device/dnn.hpp"

#include <dnnl.hpp>

namespace soybean::device {

struct DnnContext::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

DnnContext::DnnContext(int) : impl_(std::make_unique<Impl>()) {}
DnnContext::~DnnContext() = default;

} // namespace soybean::device
