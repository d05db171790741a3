#pragma once
// Tables of one row per token or position, and the sums of gradients by their rows (ops/README.md). Sequences are
// stored as rows of channels, one per position; blocks may hold some of the tokens' rows, positions or channels. A row
// of C channels: embedding moves 8C bytes, its gradient 8C besides 4 per element of the table, and C flops.
#include "kernels/kernel.hpp"

namespace soybean::kernels {

void run_embedding(const Exec&, const Call&);      ///< tokens, weight → weight[token]; 0 where another block has it
void run_embedding_grad(const Exec&, const Call&); ///< dy, tokens → Σ dy of all positions of a token, in their order
void run_positional_embedding(const Exec&, const Call&);      ///< x, weight → x + weight[position]
void run_positional_embedding_grad(const Exec&, const Call&); ///< dy → Σ dy over samples; 0 for positions elsewhere

namespace reference { // f64; a token that the table does not have throws Bug
void run_embedding(const Exec&, const Call&);
void run_embedding_grad(const Exec&, const Call&);
void run_positional_embedding(const Exec&, const Call&);
void run_positional_embedding_grad(const Exec&, const Call&);
} // namespace reference

} // namespace soybean::kernels
