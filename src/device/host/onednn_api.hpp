#pragma once
// The calls that differ between oneDNN 2 and 3, and nothing else of it. Only dnn_onednn.cpp includes this.
#include <dnnl.hpp>

namespace soybean::device::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;

/// A convolution as the library asks for it; dilation 0 means neighbouring pixels.
struct ConvDescs {
  Desc x, w, y;
  Desc bias; ///< of the forward pass; zero: none
  Dims strides, dilates, padding_begin, padding_end;
};

/// A matrix product; a zero bias: none.
struct MatmulDescs {
  Desc a, b, bias, c;
};

using ConvForward = dnnl::convolution_forward;
using ConvBackwardData = dnnl::convolution_backward_data;
using ConvBackwardWeights = dnnl::convolution_backward_weights;

constexpr auto conv_algorithm = dnnl::algorithm::convolution_direct;

#if DNNL_VERSION_MAJOR >= 3

inline ConvForward::primitive_desc conv_forward_desc(const dnnl::engine& engine, const ConvDescs& d,
                                                     const dnnl::primitive_attr& attr) {
  return {engine,
          dnnl::prop_kind::forward_training,
          conv_algorithm,
          d.x,
          d.w,
          d.bias,
          d.y,
          d.strides,
          d.dilates,
          d.padding_begin,
          d.padding_end,
          attr};
}
inline ConvBackwardData::primitive_desc conv_backward_data_desc(const dnnl::engine& engine, const ConvDescs& d,
                                                                const dnnl::primitive_attr& attr,
                                                                const ConvForward::primitive_desc& hint) {
  return {engine, conv_algorithm, d.x, d.w, d.y, d.strides, d.dilates, d.padding_begin, d.padding_end, hint, attr};
}
inline ConvBackwardWeights::primitive_desc conv_backward_weights_desc(const dnnl::engine& engine, const ConvDescs& d,
                                                                      const dnnl::primitive_attr& attr,
                                                                      const ConvForward::primitive_desc& hint) {
  return {engine, conv_algorithm, d.x, d.w, d.y, d.strides, d.dilates, d.padding_begin, d.padding_end, hint, attr};
}
inline dnnl::matmul::primitive_desc matmul_desc(const dnnl::engine& engine, const MatmulDescs& d,
                                                const dnnl::primitive_attr& attr) {
  return {engine, d.a, d.b, d.bias, d.c, attr};
}

#else

inline ConvForward::primitive_desc conv_forward_desc(const dnnl::engine& engine, const ConvDescs& d,
                                                     const dnnl::primitive_attr& attr) {
  return {{dnnl::prop_kind::forward_training, conv_algorithm, d.x, d.w, d.bias, d.y, d.strides, d.dilates,
           d.padding_begin, d.padding_end},
          attr,
          engine};
}
inline ConvBackwardData::primitive_desc conv_backward_data_desc(const dnnl::engine& engine, const ConvDescs& d,
                                                                const dnnl::primitive_attr& attr,
                                                                const ConvForward::primitive_desc& hint) {
  return {{conv_algorithm, d.x, d.w, d.y, d.strides, d.dilates, d.padding_begin, d.padding_end}, attr, engine, hint};
}
inline ConvBackwardWeights::primitive_desc conv_backward_weights_desc(const dnnl::engine& engine, const ConvDescs& d,
                                                                      const dnnl::primitive_attr& attr,
                                                                      const ConvForward::primitive_desc& hint) {
  return {{conv_algorithm, d.x, d.w, d.y, d.strides, d.dilates, d.padding_begin, d.padding_end}, attr, engine, hint};
}
inline dnnl::matmul::primitive_desc matmul_desc(const dnnl::engine& engine, const MatmulDescs& d,
                                                const dnnl::primitive_attr& attr) {
  return {{d.a, d.b, d.bias, d.c}, attr, engine};
}

#endif

} // namespace soybean::device::onednn
