#pragma once
// Rotary encodings and attention (ops/README.md) of blocks that hold whole heads, stored as rows of channels, one per
// position. What is kept of T × T numbers is one logΣexp per query and head: the gradient works out the rest again. On
// the host some queries of a head at a time, all their scores in cache, products through the vendor library; elsewhere
// a team per query (forward, gradient by queries) or key (gradients by keys and values).
#include "kernels/kernel.hpp"

namespace soybean::kernels {

/// The heads of a block, and where their elements lie: query i of sample b and head h begins at
/// ((b·queries + i)·heads + h)·width, a key likewise.
struct Heads {
  std::int64_t samples = 0, queries = 0, keys = 0;
  std::int64_t heads = 0, kv_heads = 0, width = 0;
  std::int64_t first_query = 0; ///< its position in the whole sequence
  bool causal = false;
  float scale = 0; ///< of scores: 1/√width
};
/// Of blocks of queries and keys. Throws Bug when they hold parts of heads or not all keys.
Heads make_heads(const graph::Node& node, const TensorView& q, const TensorView& k);

// Rows of the table, f32.
/// x → of each head the halves (a, b) as (a·cos − b·sin, b·cos + a·sin), the angle position·base^(−2i/width) for pair
/// i; with inverse the other way round. 3 flops per element, besides the angles.
void run_rotary(const Exec&, const Call&);
std::int64_t scratch_rotary(const Exec&, const Call&);
/// q, k, v → softmax(q·kᵀ/√width)·v over the keys a query may see, and logΣexp of its scores. 4·pairs·width flops.
void run_attention(const Exec&, const Call&);
std::int64_t scratch_attention(const Exec&, const Call&);
/// dy, y, q, k, v, logsumexp → dq, dk, dv. 10·pairs·width flops.
void run_attention_grad(const Exec&, const Call&);
std::int64_t scratch_attention_grad(const Exec&, const Call&);

namespace reference { // f64
void run_rotary(const Exec&, const Call&);
void run_attention(const Exec&, const Call&);
void run_attention_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
