#include "base/error.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

std::vector<Operator> make_table() {
  std::vector<Operator> rows;
  for (auto family : {conv2d_family,
                      conv_transpose2d_family,
                      dense_family,
                      bias_family,
                      embedding_family,
                      attention_family,
                      pointwise_family,
                      batch_norm_family,
                      group_norm_family,
                      lrn_family,
                      softmax_family,
                      pool_family,
                      dropout_family,
                      flatten_family,
                      add_family,
                      arithmetic_family,
                      broadcast_family,
                      reduce_family,
                      concat_family,
                      reshape_family,
                      pad_family,
                      upsample_family,
                      softmax_cross_entropy_family,
                      split_softmax_family,
                      pointwise_loss_family,
                      sgd_family,
                      adam_family,
                      rmsprop_family,
                      lars_family,
                      lamb_family,
                      norms_family})
    for (Operator& row : family()) rows.push_back(std::move(row));
  return rows;
}

const Operator* lookup(std::string_view name) {
  for (const Operator& row : table())
    if (row.name == name) return &row;
  return nullptr;
}

} // namespace

const std::vector<Operator>& table() {
  static const std::vector<Operator> rows = make_table();
  return rows;
}

const Operator& find(std::string_view name) {
  const Operator* row = lookup(name);
  ensure(row != nullptr, fmt::format("no operator '{}'", name));
  return *row;
}

bool exists(std::string_view name) {
  return lookup(name) != nullptr;
}

} // namespace soybean::ops
