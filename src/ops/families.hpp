#pragma once
// The rows of ops::table(), family by family: one function per source file, called by table.cpp only.
#include "ops/operator.hpp"

#include <vector>

namespace soybean::ops {

std::vector<Operator> conv2d_family();
std::vector<Operator> conv_transpose2d_family();
std::vector<Operator> dense_family();
std::vector<Operator> bias_family();
std::vector<Operator> embedding_family();
std::vector<Operator> attention_family();
std::vector<Operator> pointwise_family();
std::vector<Operator> batch_norm_family();
std::vector<Operator> pool_family();
std::vector<Operator> dropout_family();
std::vector<Operator> flatten_family();
std::vector<Operator> add_family();
std::vector<Operator> group_norm_family();
std::vector<Operator> lrn_family();
std::vector<Operator> softmax_family();
std::vector<Operator> arithmetic_family();
std::vector<Operator> broadcast_family();
std::vector<Operator> reduce_family();
std::vector<Operator> concat_family();
std::vector<Operator> reshape_family();
std::vector<Operator> pad_family();
std::vector<Operator> upsample_family();
std::vector<Operator> softmax_cross_entropy_family();
std::vector<Operator> split_softmax_family();
std::vector<Operator> pointwise_loss_family();
std::vector<Operator> sgd_family();
std::vector<Operator> adam_family();
std::vector<Operator> rmsprop_family();
std::vector<Operator> lars_family();
std::vector<Operator> lamb_family();
std::vector<Operator> norms_family();

} // namespace soybean::ops
