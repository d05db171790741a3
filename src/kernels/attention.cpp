#include "kernels/attention.hpp"

#include "device/dnn.hpp"
#include "device/math.hpp"
#include "device/teams.hpp"
#include "kernels/layout.hpp"

#include <algorithm>
#include <cmath>

namespace soybean::kernels {

using device::Product;

Heads make_heads(const graph::Node& node, const TensorView& q, const TensorView& k) {
  const graph::Attributes& a = node.attributes;
  Heads s{.samples = q.extent(0), .queries = q.extent(2), .keys = k.extent(2), .first_query = q.box.offsets[2]};
  s.width = q.global[1] / a.integer("heads");
  s.heads = q.extent(1) / s.width;
  s.kv_heads = k.extent(1) / s.width;
  s.causal = a.integer("causal") == 1;
  s.scale = 1 / std::sqrt(static_cast<float>(s.width));
  ensure(s.heads * s.width == q.extent(1) && s.kv_heads * s.width == k.extent(1) && k.extent(2) == k.global[2] &&
             s.heads * a.integer("kv_heads") == s.kv_heads * a.integer("heads") && k.extent(0) == s.samples,
         node.name + ": blocks of queries and keys do not fit");
  return s;
}

namespace {

/// How many keys query i sees.
KOKKOS_INLINE_FUNCTION std::int64_t visible(const Heads& s, std::int64_t i) {
  return s.causal ? device::math::min(s.keys, s.first_query + i + 1) : s.keys;
}
/// Where query i of a sample's head begins, and key j of the head it looks at.
KOKKOS_INLINE_FUNCTION std::int64_t query_at(const Heads& s, std::int64_t sample, std::int64_t head, std::int64_t i) {
  return ((sample * s.queries + i) * s.heads + head) * s.width;
}
KOKKOS_INLINE_FUNCTION std::int64_t key_at(const Heads& s, std::int64_t sample, std::int64_t kv_head, std::int64_t j) {
  return ((sample * s.keys + j) * s.kv_heads + kv_head) * s.width;
}
KOKKOS_INLINE_FUNCTION std::int64_t shared_by(const Heads& s) {
  return s.heads / s.kv_heads;
}
KOKKOS_INLINE_FUNCTION float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
  for (std::int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
  return sum;
}

/// Operands and results; those of the gradient nullptr in the forward pass and the other way round.
struct Pointers {
  const float *dy, *kept, *q, *k, *v, *logsumexp;
  float *y, *sums; ///< forward
  float *dq, *dk, *dv;
};

Pointers forward_pointers(const Call& call) {
  for (const TensorView& view : call.inputs) expect(view, DType::f32);
  const auto in = [&](std::size_t i) { return call.inputs[i].as<const float>(); };
  return {.q = in(0), .k = in(1), .v = in(2), .y = call.outputs[0].as<float>(), .sums = call.outputs[1].as<float>()};
}

Pointers gradient_pointers(const Call& call) {
  for (const TensorView& view : call.inputs) expect(view, DType::f32);
  const auto in = [&](std::size_t i) { return call.inputs[i].as<const float>(); };
  const auto out = [&](std::size_t i) { return call.outputs[i].as<float>(); };
  return {.dy = in(0),
          .kept = in(1),
          .q = in(2),
          .k = in(3),
          .v = in(4),
          .logsumexp = in(5),
          .dq = out(0),
          .dk = out(1),
          .dv = out(2)};
}

// ---- The host: blocks of queries, whose scores stay in cache.

constexpr std::int64_t block_queries = 64;

std::int64_t blocks_of(const Heads& s) {
  return (s.queries + block_queries - 1) / block_queries;
}

/// Some queries of a head, and the products they take part in.
struct Block {
  std::int64_t sample, head, first, rows, keys; ///< first query of the block's, queries, keys that some of them see
};
Block block_at(const Heads& s, std::int64_t sample, std::int64_t head, std::int64_t index) {
  Block b{.sample = sample, .head = head, .first = index * block_queries};
  b.rows = std::min(block_queries, s.queries - b.first);
  b.keys = visible(s, b.first + b.rows - 1);
  return b;
}

/// scores [rows][keys] = factor · a·bᵀ, a queries' and b keys' vectors.
void score(const Heads& s, const Block& b, float factor, const float* a, const float* k, float* scores) {
  device::thread_product({.m = b.rows,
                          .n = b.keys,
                          .k = s.width,
                          .b_transposed = true,
                          .a_row = s.heads * s.width,
                          .b_row = s.kv_heads * s.width,
                          .c_row = b.keys,
                          .factor = factor},
                         a, k, scores);
}
/// y [rows][width] = scores · b, b keys' vectors.
void gather(const Heads& s, const Block& b, const float* scores, const float* v, float* y) {
  device::thread_product({.m = b.rows,
                          .n = s.width,
                          .k = b.keys,
                          .a_row = b.keys,
                          .b_row = s.kv_heads * s.width,
                          .c_row = s.heads * s.width},
                         scores, v, y);
}
/// c [keys][width] += scoresᵀ · a, a queries' vectors.
void scatter(const Heads& s, const Block& b, const float* scores, const float* a, float* c) {
  device::thread_product({.m = b.keys,
                          .n = s.width,
                          .k = b.rows,
                          .a_transposed = true,
                          .a_row = b.keys,
                          .b_row = s.heads * s.width,
                          .c_row = s.kv_heads * s.width,
                          .adds = true},
                         scores, a, c);
}

void attend_block(const Heads& s, const Block& b, const Pointers& p, float* scores) {
  const std::int64_t at = query_at(s, b.sample, b.head, b.first), kv = b.head / shared_by(s);
  const std::int64_t keys = key_at(s, b.sample, kv, 0);
  score(s, b, s.scale, p.q + at, p.k + keys, scores);
  const device::HostTeam team;
  float totals[block_queries];
  for (std::int64_t i = 0; i < b.rows; ++i) {
    float* row = scores + i * b.keys;
    const std::int64_t count = visible(s, b.first + i);
    const float most = team.max(count, [&](std::int64_t j) { return row[j]; });
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t j = 0; j < count; ++j) {
      row[j] = device::math::exp(row[j] - most);
      total += row[j];
    }
    std::fill(row + count, row + b.keys, 0.0f);
    totals[i] = total;
    p.sums[at / s.width + i * s.heads] = most + std::log(total);
  }
  gather(s, b, scores, p.v + keys, p.y + at);
  for (std::int64_t i = 0; i < b.rows; ++i) {
    float* y = p.y + at + i * s.heads * s.width;
    const float factor = 1 / totals[i];
    team.each(s.width, [&](std::int64_t d) { y[d] *= factor; });
  }
}

/// Gradients by the queries of a block, and their share of those by keys and values.
void differentiate_block(const Heads& s, const Block& b, const Pointers& p, float* shares, float* slopes) {
  const std::int64_t at = query_at(s, b.sample, b.head, b.first), kv = b.head / shared_by(s);
  const std::int64_t keys = key_at(s, b.sample, kv, 0);
  score(s, b, s.scale, p.q + at, p.k + keys, shares);
  score(s, b, 1, p.dy + at, p.v + keys, slopes);
  const device::HostTeam team;
  for (std::int64_t i = 0; i < b.rows; ++i) {
    float *share = shares + i * b.keys, *slope = slopes + i * b.keys;
    const std::int64_t query = at + i * s.heads * s.width, count = visible(s, b.first + i);
    const float log = p.logsumexp[query / s.width], delta = dot(p.dy + query, p.kept + query, s.width);
    team.each(count, [&](std::int64_t j) {
      share[j] = device::math::exp(share[j] - log);
      slope[j] = s.scale * share[j] * (slope[j] - delta);
    });
    std::fill(share + count, share + b.keys, 0.0f);
    std::fill(slope + count, slope + b.keys, 0.0f);
  }
  gather(s, b, slopes, p.k + keys, p.dq + at);
  scatter(s, b, slopes, p.q + at, p.dk + keys);
  scatter(s, b, shares, p.dy + at, p.dv + keys);
}

/// work(worker, item) for all items, those of a worker one after the other.
template<class Work>
void share_out(const Exec& exec, std::int64_t items, std::int64_t work_of_item, const char* label, const Work& work) {
  const std::int64_t workers = exec.threads();
  device::host_item_for(exec, workers, items * work_of_item / workers, label, [&](std::int64_t worker) {
    for (std::int64_t item = worker; item < items; item += workers) work(worker, item);
  });
}

void attend_on_host(const Exec& exec, const Heads& s, const Pointers& p, float* scratch) {
  const std::int64_t blocks = blocks_of(s), items = s.samples * s.heads * blocks;
  share_out(exec, items, block_queries * s.keys * s.width, "soybean::attention",
            [&](std::int64_t worker, std::int64_t item) {
              const std::int64_t pair = item / blocks;
              attend_block(s, block_at(s, pair / s.heads, pair % s.heads, item % blocks), p,
                           scratch + worker * block_queries * s.keys);
            });
}

void differentiate_on_host(const Exec& exec, const Heads& s, const Pointers& p, float* scratch) {
  const std::int64_t blocks = blocks_of(s), group = s.kv_heads == 0 ? 0 : shared_by(s);
  share_out(exec, s.samples * s.kv_heads, group * s.queries * s.keys * s.width, "soybean::attention_grad",
            [&](std::int64_t worker, std::int64_t item) {
              const std::int64_t sample = item / s.kv_heads, kv = item % s.kv_heads;
              for (std::int64_t j = 0; j < s.keys; ++j) {
                std::fill_n(p.dk + key_at(s, sample, kv, j), s.width, 0.0f);
                std::fill_n(p.dv + key_at(s, sample, kv, j), s.width, 0.0f);
              }
              float* shares = scratch + 2 * worker * block_queries * s.keys;
              for (std::int64_t i = 0; i < group * blocks; ++i)
                differentiate_block(s, block_at(s, sample, kv * group + i / blocks, i % blocks), p, shares,
                                    shares + block_queries * s.keys);
            });
}

// ---- Elsewhere: a team per query or key, its scores in scratch.

/// Teams at a time, so that scratch stays small.
constexpr std::int64_t most_teams = 8192;

/// Where query number `item` of all is, what it looks at, and how much of that it sees.
struct QueryPlace {
  std::int64_t at, keys, count, stride;
};
KOKKOS_INLINE_FUNCTION QueryPlace query_place(const Heads& s, std::int64_t item) {
  const std::int64_t i = item % s.queries, head = item / s.queries % s.heads, sample = item / s.queries / s.heads;
  return {query_at(s, sample, head, i), key_at(s, sample, head / shared_by(s), 0), visible(s, i), s.kv_heads * s.width};
}

/// One query: its shares of the values.
struct Attend {
  Heads s;
  Pointers p;
  float* scratch;
  std::int64_t first;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t slot) const {
    const QueryPlace place = query_place(s, first + slot);
    const std::int64_t at = place.at, keys = place.keys, count = place.count, stride = place.stride;
    float* row = scratch + slot * s.keys;
    team.each(count, [&](std::int64_t j) { row[j] = s.scale * dot(p.q + at, p.k + keys + j * stride, s.width); });
    const float most = team.max(count, [&](std::int64_t j) { return row[j]; });
    const double total = team.sum(count, [&](std::int64_t j) {
      row[j] = device::math::exp(row[j] - most);
      return row[j];
    });
    team.barrier();
    const auto factor = static_cast<float>(1 / total);
    team.each(s.width, [&](std::int64_t d) {
      float sum = 0;
      for (std::int64_t j = 0; j < count; ++j) sum += row[j] * p.v[keys + j * stride + d];
      p.y[at + d] = sum * factor;
    });
    if (team.leads()) p.sums[at / s.width] = most + static_cast<float>(device::math::log(total));
  }
};

/// One query: the gradient by it, and delta = dy·y, which the keys need.
struct ByQuery {
  Heads s;
  Pointers p;
  float *deltas, *scratch;
  std::int64_t first;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t slot) const {
    const QueryPlace place = query_place(s, first + slot);
    const std::int64_t at = place.at, keys = place.keys, count = place.count, stride = place.stride;
    float* row = scratch + slot * s.keys;
    const auto delta =
        static_cast<float>(team.sum(s.width, [&](std::int64_t d) { return p.dy[at + d] * p.kept[at + d]; }));
    const float log = p.logsumexp[at / s.width];
    team.each(count, [&](std::int64_t j) {
      const float share = device::math::exp(s.scale * dot(p.q + at, p.k + keys + j * stride, s.width) - log);
      row[j] = s.scale * share * (dot(p.dy + at, p.v + keys + j * stride, s.width) - delta);
    });
    team.barrier();
    team.each(s.width, [&](std::int64_t d) {
      float sum = 0;
      for (std::int64_t j = 0; j < count; ++j) sum += row[j] * p.k[keys + j * stride + d];
      p.dq[at + d] = sum;
    });
    if (team.leads()) deltas[at / s.width] = delta;
  }
};

/// One key: the gradients by it and its value, over the queries of all heads that share it.
struct ByKey {
  Heads s;
  Pointers p;
  const float* deltas;
  float* scratch;
  std::int64_t first;

  template<class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t slot) const {
    const std::int64_t item = first + slot, j = item % s.keys, kv = item / s.keys % s.kv_heads;
    const std::int64_t sample = item / s.keys / s.kv_heads, at = key_at(s, sample, kv, j);
    const std::int64_t stride = s.heads * s.width;
    float *shares = scratch + 2 * slot * s.queries, *slopes = shares + s.queries;
    team.each(s.width, [&](std::int64_t d) { p.dk[at + d] = p.dv[at + d] = 0; });
    for (std::int64_t head = kv * shared_by(s); head < (kv + 1) * shared_by(s); ++head) {
      const std::int64_t queries = query_at(s, sample, head, 0);
      team.barrier(); // the head before is done with the scores
      team.each(s.queries, [&](std::int64_t i) {
        const std::int64_t query = queries + i * stride;
        const bool seen = j < visible(s, i);
        const float share =
            seen ? device::math::exp(s.scale * dot(p.q + query, p.k + at, s.width) - p.logsumexp[query / s.width])
                 : 0.0f;
        shares[i] = share;
        slopes[i] = seen ? s.scale * share * (dot(p.dy + query, p.v + at, s.width) - deltas[query / s.width]) : 0.0f;
      });
      team.barrier();
      team.each(s.width, [&](std::int64_t d) {
        float dk = 0, dv = 0;
        for (std::int64_t i = 0; i < s.queries; ++i) {
          dk += slopes[i] * p.q[queries + i * stride + d];
          dv += shares[i] * p.dy[queries + i * stride + d];
        }
        p.dk[at + d] += dk;
        p.dv[at + d] += dv;
      });
    }
  }
};

/// Runs a kernel of teams over all items, some at a time.
template<class Kernel>
void in_turns(const Exec& exec, std::int64_t items, std::int64_t work, const char* label, Kernel kernel) {
  for (kernel.first = 0; kernel.first < items; kernel.first += most_teams)
    device::teams_for(exec, std::min(most_teams, items - kernel.first), work, label, kernel);
}

std::int64_t queries_in_all(const Heads& s) {
  return s.samples * s.heads * s.queries;
}
std::int64_t keys_in_all(const Heads& s) {
  return s.samples * s.kv_heads * s.keys;
}
std::int64_t aligned(std::int64_t floats) {
  return (floats + 15) / 16 * 16;
}

} // namespace

void run_attention(const Exec& exec, const Call& call) {
  const Heads s = make_heads(call.node, call.inputs[0], call.inputs[1]);
  const Pointers p = forward_pointers(call);
  auto* scratch = static_cast<float*>(call.scratch);
  if (device::offers_thread_products(exec)) return attend_on_host(exec, s, p, scratch);
  in_turns(exec, queries_in_all(s), 2 * s.keys * s.width, "soybean::attention", Attend{s, p, scratch, 0});
}

std::int64_t scratch_attention(const Exec& exec, const Call& call) {
  const Heads s = make_heads(call.node, call.inputs[0], call.inputs[1]);
  const std::int64_t rows =
      device::offers_thread_products(exec) ? exec.threads() * block_queries : std::min(most_teams, queries_in_all(s));
  return rows * s.keys * static_cast<std::int64_t>(sizeof(float));
}

void run_attention_grad(const Exec& exec, const Call& call) {
  const Heads s = make_heads(call.node, call.inputs[2], call.inputs[3]);
  const Pointers p = gradient_pointers(call);
  auto* scratch = static_cast<float*>(call.scratch);
  if (device::offers_thread_products(exec)) return differentiate_on_host(exec, s, p, scratch);
  float* rows = scratch + aligned(queries_in_all(s));
  in_turns(exec, queries_in_all(s), 3 * s.keys * s.width, "soybean::attention_grad::queries",
           ByQuery{s, p, scratch, rows, 0});
  in_turns(exec, keys_in_all(s), 4 * s.queries * s.width, "soybean::attention_grad::keys",
           ByKey{s, p, scratch, rows, 0});
}

std::int64_t scratch_attention_grad(const Exec& exec, const Call& call) {
  const Heads s = make_heads(call.node, call.inputs[2], call.inputs[3]);
  std::int64_t floats = 2 * exec.threads() * block_queries * s.keys;
  if (!device::offers_thread_products(exec))
    floats = aligned(queries_in_all(s)) + std::max(std::min(most_teams, queries_in_all(s)) * s.keys,
                                                   2 * std::min(most_teams, keys_in_all(s)) * s.queries);
  return floats * static_cast<std::int64_t>(sizeof(float));
}

} // namespace soybean::kernels
