#include "base/error.hpp"
#include "kernels/adam.hpp"
#include "kernels/add.hpp"
#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/batch_norm.hpp"
#include "kernels/bias.hpp"
#include "kernels/broadcast.hpp"
#include "kernels/concat.hpp"
#include "kernels/conv2d.hpp"
#include "kernels/dense.hpp"
#include "kernels/dropout.hpp"
#include "kernels/embedding.hpp"
#include "kernels/flatten.hpp"
#include "kernels/group_norm.hpp"
#include "kernels/kernel.hpp"
#include "kernels/lamb.hpp"
#include "kernels/lars.hpp"
#include "kernels/lrn.hpp"
#include "kernels/norms.hpp"
#include "kernels/pad.hpp"
#include "kernels/pointwise.hpp"
#include "kernels/pointwise_loss.hpp"
#include "kernels/pool.hpp"
#include "kernels/reduce.hpp"
#include "kernels/reshape.hpp"
#include "kernels/rmsprop.hpp"
#include "kernels/sgd.hpp"
#include "kernels/softmax.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "kernels/split_softmax.hpp"
#include "kernels/upsample.hpp"

namespace soybean::kernels {

namespace {

/// One row per operator: Kokkos kernels and the vendor library.
const std::vector<Kernel>& fast_table() {
  static const std::vector<Kernel> rows = {
      {"conv2d", run_conv2d, scratch_conv2d, true},
      {"conv2d_grad_input", run_conv2d_grad_input, scratch_conv2d_grad_input},
      {"conv2d_grad_weight", run_conv2d_grad_weight, scratch_conv2d_grad_weight},
      {"conv_transpose2d", run_conv2d_grad_input, scratch_conv2d_grad_input}, // the same sums
      {"conv_transpose2d_grad_input", run_conv2d, scratch_conv2d},
      {"conv_transpose2d_grad_weight", run_conv2d_grad_weight, scratch_conv2d_grad_weight},
      {"dense", run_dense, scratch_dense, true},
      {"dense_grad_input", run_dense_grad_input, scratch_dense_grad_input},
      {"dense_grad_weight", run_dense_grad_weight, scratch_dense_grad_weight},
      {"bias", run_bias, nullptr},
      {"bias_grad", run_bias_grad, scratch_bias_grad},
      {"embedding", run_embedding, nullptr},
      {"embedding_grad", run_embedding_grad, nullptr},
      {"positional_embedding", run_positional_embedding, nullptr},
      {"positional_embedding_grad", run_positional_embedding_grad, nullptr},
      {"rotary", run_rotary, scratch_rotary},
      {"attention", run_attention, scratch_attention},
      {"attention_grad", run_attention_grad, scratch_attention_grad},
      {"rms_norm", run_group_norm, nullptr},
      {"rms_norm_grad", run_group_norm_grad, nullptr},
      {"rms_norm_sums", run_group_norm_sums, scratch_group_norm_sums},
      {"relu", run_relu, nullptr},
      {"relu_grad", run_relu_grad, nullptr},
      {"relu6", run_relu6, nullptr},
      {"relu6_grad", run_relu6_grad, nullptr},
      {"tanh", run_tanh, nullptr},
      {"tanh_grad", run_tanh_grad, nullptr},
      {"sigmoid", run_sigmoid, nullptr},
      {"sigmoid_grad", run_sigmoid_grad, nullptr},
      {"leaky_relu", run_leaky_relu, nullptr},
      {"leaky_relu_grad", run_leaky_relu_grad, nullptr},
      {"elu", run_elu, nullptr},
      {"elu_grad", run_elu_grad, nullptr},
      {"gelu", run_gelu, nullptr},
      {"gelu_grad", run_gelu_grad, nullptr},
      {"silu", run_silu, nullptr},
      {"silu_grad", run_silu_grad, nullptr},
      {"hard_swish", run_hard_swish, nullptr},
      {"hard_swish_grad", run_hard_swish_grad, nullptr},
      {"channel_mean", run_channel_mean, scratch_channel_mean},
      {"channel_variance", run_channel_variance, scratch_channel_mean},
      {"batch_norm", run_batch_norm, scratch_batch_norm},
      {"batch_norm_sums", run_batch_norm_sums, scratch_batch_norm_sums},
      {"batch_norm_grad", run_batch_norm_grad, scratch_batch_norm_grad},
      {"running_average", run_running_average, nullptr},
      {"max_pool", run_max_pool, nullptr},
      {"max_pool_grad", run_max_pool_grad, nullptr},
      {"avg_pool", run_avg_pool, nullptr},
      {"avg_pool_grad", run_avg_pool_grad, nullptr},
      {"global_avg_pool", run_global_avg_pool, nullptr},
      {"global_avg_pool_grad", run_global_avg_pool_grad, nullptr},
      {"dropout", run_dropout, nullptr},
      {"dropout_grad", run_dropout_grad, nullptr},
      {"flatten", run_flatten, nullptr},
      {"flatten_grad", run_flatten, nullptr},
      {"add", run_add, nullptr},
      {"group_norm", run_group_norm, nullptr},
      {"group_norm_grad", run_group_norm_grad, nullptr},
      {"group_norm_sums", run_group_norm_sums, scratch_group_norm_sums},
      {"layer_norm", run_group_norm, nullptr},
      {"layer_norm_grad", run_group_norm_grad, nullptr},
      {"layer_norm_sums", run_group_norm_sums, scratch_group_norm_sums},
      {"lrn", run_lrn, nullptr},
      {"lrn_grad", run_lrn_grad, scratch_lrn_grad},
      {"softmax", run_softmax, nullptr},
      {"softmax_grad", run_softmax_grad, nullptr},
      {"log_softmax", run_log_softmax, nullptr},
      {"log_softmax_grad", run_log_softmax_grad, nullptr},
      {"scale", run_scale, nullptr},
      {"shift", run_shift, nullptr},
      {"pow", run_pow, nullptr},
      {"pow_grad", run_pow_grad, nullptr},
      {"sqrt", run_sqrt, nullptr},
      {"sqrt_grad", run_sqrt_grad, nullptr},
      {"exp", run_exp, nullptr},
      {"log", run_log, nullptr},
      {"abs", run_abs, nullptr},
      {"abs_grad", run_abs_grad, nullptr},
      {"clamp", run_clamp, nullptr},
      {"clamp_grad", run_clamp_grad, nullptr},
      {"mul", run_mul, nullptr},
      {"concat", run_concat, nullptr},
      {"slice", run_slice, nullptr},
      {"slice_grad", run_slice_grad, nullptr},
      {"reshape", run_reshape, nullptr},
      {"permute", run_permute, nullptr},
      {"pad", run_pad, nullptr},
      {"pad_grad", run_pad_grad, nullptr},
      {"upsample", run_upsample, nullptr},
      {"upsample_grad", run_upsample_grad, nullptr},
      {"add_repeated", run_add_repeated, nullptr},
      {"sub", run_sub, nullptr},
      {"div", run_div, nullptr},
      {"maximum", run_maximum, nullptr},
      {"minimum", run_minimum, nullptr},
      {"greater_grad", run_greater_grad, nullptr},
      {"reduce", run_reduce, nullptr},
      {"reduce_batch", run_reduce_batch, scratch_reduce_batch},
      {"expand", run_expand, nullptr},
      {"softmax_cross_entropy", run_softmax_cross_entropy, scratch_softmax_cross_entropy},
      {"softmax_cross_entropy_grad", run_softmax_cross_entropy_grad, nullptr},
      {"softmax_parts", run_softmax_parts, nullptr},
      {"label_logit", run_label_logit, nullptr},
      {"label_rank", run_label_rank, nullptr},
      {"split_softmax_loss", run_split_softmax_loss, scratch_split_softmax_loss},
      {"split_softmax_loss_grad", run_split_softmax_loss_grad, nullptr},
      {"mse", run_mse, scratch_pointwise_loss},
      {"mse_grad", run_mse_grad, nullptr},
      {"binary_cross_entropy", run_binary_cross_entropy, scratch_pointwise_loss},
      {"binary_cross_entropy_grad", run_binary_cross_entropy_grad, nullptr},
      {"total_loss", run_total_loss, nullptr},
      {"sgd_update", run_sgd_update, nullptr},
      {"adam_update", run_adam_update, nullptr},
      {"rmsprop_update", run_rmsprop_update, nullptr},
      {"lars_update", run_lars_update, nullptr},
      {"lamb_direction", run_lamb_direction, nullptr},
      {"lamb_update", run_lamb_update, nullptr},
      {"sum_of_squares", run_sum_of_squares, scratch_sum_of_squares},
      {"sum_of_sums", run_sum_of_sums, nullptr},
      {"clip_factor", run_clip_factor, nullptr},
  };
  return rows;
}

/// One row per operator: the plain references in double.
const std::vector<Kernel>& reference_table() {
  static const std::vector<Kernel> rows = {
      {"conv2d", reference::run_conv2d, reference::scratch_conv2d},
      {"conv2d_grad_input", reference::run_conv2d_grad_input, reference::scratch_conv2d_grad_input},
      {"conv2d_grad_weight", reference::run_conv2d_grad_weight, reference::scratch_conv2d_grad_weight},
      {"conv_transpose2d", reference::run_conv2d_grad_input, reference::scratch_conv2d_grad_input}, // the same sums
      {"conv_transpose2d_grad_input", reference::run_conv2d, reference::scratch_conv2d},
      {"conv_transpose2d_grad_weight", reference::run_conv2d_grad_weight, reference::scratch_conv2d_grad_weight},
      {"dense", reference::run_dense, nullptr},
      {"dense_grad_input", reference::run_dense_grad_input, nullptr},
      {"dense_grad_weight", reference::run_dense_grad_weight, nullptr},
      {"bias", reference::run_bias, nullptr},
      {"bias_grad", reference::run_bias_grad, nullptr},
      {"embedding", reference::run_embedding, nullptr},
      {"embedding_grad", reference::run_embedding_grad, nullptr},
      {"positional_embedding", reference::run_positional_embedding, nullptr},
      {"positional_embedding_grad", reference::run_positional_embedding_grad, nullptr},
      {"rotary", reference::run_rotary, nullptr},
      {"attention", reference::run_attention, nullptr},
      {"attention_grad", reference::run_attention_grad, nullptr},
      {"rms_norm", reference::run_group_norm, nullptr},
      {"rms_norm_grad", reference::run_group_norm_grad, nullptr},
      {"rms_norm_sums", reference::run_group_norm_sums, nullptr},
      {"relu", reference::run_relu, nullptr},
      {"relu_grad", reference::run_relu_grad, nullptr},
      {"relu6", reference::run_relu6, nullptr},
      {"relu6_grad", reference::run_relu6_grad, nullptr},
      {"tanh", reference::run_tanh, nullptr},
      {"tanh_grad", reference::run_tanh_grad, nullptr},
      {"sigmoid", reference::run_sigmoid, nullptr},
      {"sigmoid_grad", reference::run_sigmoid_grad, nullptr},
      {"leaky_relu", reference::run_leaky_relu, nullptr},
      {"leaky_relu_grad", reference::run_leaky_relu_grad, nullptr},
      {"elu", reference::run_elu, nullptr},
      {"elu_grad", reference::run_elu_grad, nullptr},
      {"gelu", reference::run_gelu, nullptr},
      {"gelu_grad", reference::run_gelu_grad, nullptr},
      {"silu", reference::run_silu, nullptr},
      {"silu_grad", reference::run_silu_grad, nullptr},
      {"hard_swish", reference::run_hard_swish, nullptr},
      {"hard_swish_grad", reference::run_hard_swish_grad, nullptr},
      {"channel_mean", reference::run_channel_mean, nullptr},
      {"channel_variance", reference::run_channel_variance, nullptr},
      {"batch_norm", reference::run_batch_norm, nullptr},
      {"batch_norm_sums", reference::run_batch_norm_sums, nullptr},
      {"batch_norm_grad", reference::run_batch_norm_grad, nullptr},
      {"running_average", reference::run_running_average, nullptr},
      {"max_pool", reference::run_max_pool, nullptr},
      {"max_pool_grad", reference::run_max_pool_grad, nullptr},
      {"avg_pool", reference::run_avg_pool, nullptr},
      {"avg_pool_grad", reference::run_avg_pool_grad, nullptr},
      {"global_avg_pool", reference::run_global_avg_pool, nullptr},
      {"global_avg_pool_grad", reference::run_global_avg_pool_grad, nullptr},
      {"dropout", reference::run_dropout, nullptr},
      {"dropout_grad", reference::run_dropout_grad, nullptr},
      {"flatten", reference::run_flatten, nullptr},
      {"flatten_grad", reference::run_flatten, nullptr},
      {"add", reference::run_add, nullptr},
      {"group_norm", reference::run_group_norm, nullptr},
      {"group_norm_grad", reference::run_group_norm_grad, nullptr},
      {"group_norm_sums", reference::run_group_norm_sums, nullptr},
      {"layer_norm", reference::run_group_norm, nullptr},
      {"layer_norm_grad", reference::run_group_norm_grad, nullptr},
      {"layer_norm_sums", reference::run_group_norm_sums, nullptr},
      {"lrn", reference::run_lrn, nullptr},
      {"lrn_grad", reference::run_lrn_grad, nullptr},
      {"softmax", reference::run_softmax, nullptr},
      {"softmax_grad", reference::run_softmax_grad, nullptr},
      {"log_softmax", reference::run_log_softmax, nullptr},
      {"log_softmax_grad", reference::run_log_softmax_grad, nullptr},
      {"scale", reference::run_scale, nullptr},
      {"shift", reference::run_shift, nullptr},
      {"pow", reference::run_pow, nullptr},
      {"pow_grad", reference::run_pow_grad, nullptr},
      {"sqrt", reference::run_sqrt, nullptr},
      {"sqrt_grad", reference::run_sqrt_grad, nullptr},
      {"exp", reference::run_exp, nullptr},
      {"log", reference::run_log, nullptr},
      {"abs", reference::run_abs, nullptr},
      {"abs_grad", reference::run_abs_grad, nullptr},
      {"clamp", reference::run_clamp, nullptr},
      {"clamp_grad", reference::run_clamp_grad, nullptr},
      {"mul", reference::run_mul, nullptr},
      {"concat", reference::run_concat, nullptr},
      {"slice", reference::run_slice, nullptr},
      {"slice_grad", reference::run_slice_grad, nullptr},
      {"reshape", reference::run_reshape, nullptr},
      {"permute", reference::run_permute, nullptr},
      {"pad", reference::run_pad, nullptr},
      {"pad_grad", reference::run_pad_grad, nullptr},
      {"upsample", reference::run_upsample, nullptr},
      {"upsample_grad", reference::run_upsample_grad, nullptr},
      {"add_repeated", reference::run_add_repeated, nullptr},
      {"sub", reference::run_sub, nullptr},
      {"div", reference::run_div, nullptr},
      {"maximum", reference::run_maximum, nullptr},
      {"minimum", reference::run_minimum, nullptr},
      {"greater_grad", reference::run_greater_grad, nullptr},
      {"reduce", reference::run_reduce, nullptr},
      {"reduce_batch", reference::run_reduce_batch, nullptr},
      {"expand", reference::run_expand, nullptr},
      {"softmax_cross_entropy", reference::run_softmax_cross_entropy, nullptr},
      {"softmax_cross_entropy_grad", reference::run_softmax_cross_entropy_grad, nullptr},
      {"softmax_parts", reference::run_softmax_parts, nullptr},
      {"label_logit", reference::run_label_logit, nullptr},
      {"label_rank", reference::run_label_rank, nullptr},
      {"split_softmax_loss", reference::run_split_softmax_loss, nullptr},
      {"split_softmax_loss_grad", reference::run_split_softmax_loss_grad, nullptr},
      {"mse", reference::run_mse, nullptr},
      {"mse_grad", reference::run_mse_grad, nullptr},
      {"binary_cross_entropy", reference::run_binary_cross_entropy, nullptr},
      {"binary_cross_entropy_grad", reference::run_binary_cross_entropy_grad, nullptr},
      {"total_loss", reference::run_total_loss, nullptr},
      {"sgd_update", reference::run_sgd_update, nullptr},
      {"adam_update", reference::run_adam_update, nullptr},
      {"rmsprop_update", reference::run_rmsprop_update, nullptr},
      {"lars_update", reference::run_lars_update, nullptr},
      {"lamb_direction", reference::run_lamb_direction, nullptr},
      {"lamb_update", reference::run_lamb_update, nullptr},
      {"sum_of_squares", reference::run_sum_of_squares, nullptr},
      {"sum_of_sums", reference::run_sum_of_sums, nullptr},
      {"clip_factor", reference::run_clip_factor, nullptr},
  };
  return rows;
}

} // namespace

const std::vector<Kernel>& table(DType precision) {
  ensure(precision != DType::i32, "kernels are in fp32 or fp64");
  return precision == DType::f32 ? fast_table() : reference_table();
}

const Kernel& find(std::string_view op, DType precision) {
  for (const Kernel& kernel : table(precision))
    if (kernel.op == op) return kernel;
  throw Bug(fmt::format("no {} kernel for operator {}", to_string(precision), op));
}

} // namespace soybean::kernels
