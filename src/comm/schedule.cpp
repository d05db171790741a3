#include "comm/schedule.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <source_location>

namespace soybean::comm {

namespace {

/// `ensure` without making a std::string of the text: collectives allocate nothing.
void expect(bool condition, const char* text, std::source_location where = std::source_location::current()) {
  if (!condition) ensure(false, text, where);
}

std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}

bool disjoint(const std::byte* a, std::int64_t a_bytes, const std::byte* b, std::int64_t b_bytes) {
  const std::less_equal<> before;
  return a_bytes == 0 || b_bytes == 0 || before(a + a_bytes, b) || before(b + b_bytes, a);
}

struct Block {
  std::int64_t begin, end; ///< bytes
};

/// A group seen from one member: indices are positions in the group, modulo its size.
struct Ring {
  const std::vector<int>& group;
  int me;
  int size() const { return static_cast<int>(group.size()); }
  int wrap(int index) const { return (index % size() + size()) % size(); }
  int next() const { return group[wrap(me + 1)]; }
  int previous() const { return group[wrap(me - 1)]; }
};

Ring make_ring(const std::vector<int>& group, int rank, int size) {
  const auto found = std::find(group.begin(), group.end(), rank);
  expect(found != group.end(), "this rank starts a collective of a group it is not in");
  for (int member : group) expect(0 <= member && member < size, "no such rank in a group");
  return {group, static_cast<int>(found - group.begin())};
}

/// Calls f(begin, end) for the pieces of at most `most` bytes of a block; not at all when it is empty.
template<class F>
void for_pieces(Block block, std::int64_t most, const F& f) {
  for (std::int64_t at = block.begin; at < block.end; at += most) f(at, std::min(at + most, block.end));
}

/// Where the terms, the sums so far and this rank's finished block are. `block(j)` is block j's byte range in them.
struct Memory {
  std::byte* terms;
  std::byte* sums;
  std::byte* result; ///< of this rank's own block
};

/// The p-1 steps of a ring reduce-scatter.
template<class BlockOf>
void reduce_round(const Ring& ring, const Memory& at, const BlockOf& block, std::int64_t chunk, Schedule& out) {
  for_pieces(block(ring.wrap(ring.me - 1)), chunk, [&](std::int64_t begin, std::int64_t end) {
    out.sends.push_back({ring.next(), at.terms + begin, end - begin, 0});
  });
  for (int step = 0; step + 1 < ring.size(); ++step) {
    const Block b = block(ring.wrap(ring.me - 2 - step));
    const bool mine = step + 2 == ring.size();
    for_pieces(b, chunk, [&](std::int64_t begin, std::int64_t end) {
      std::byte* into = mine ? at.result + (begin - b.begin) : at.sums + begin;
      out.receives.push_back({ring.previous(), into, at.terms + begin, end - begin, 0});
      if (mine) return;
      out.sends.push_back({ring.next(), into, end - begin, static_cast<std::int64_t>(out.receives.size())});
    });
  }
}

/// The p-1 steps of a ring all-gather that follows a reduce_round on the same blocks. Its k-th receive overwrites what
/// the k-th send of the round before sent, hence the `after`.
template<class BlockOf>
void gather_round(const Ring& ring, std::byte* sums, const BlockOf& block, std::int64_t chunk, Schedule& out) {
  const Block mine = block(ring.me);
  const std::int64_t pieces = (mine.end - mine.begin + chunk - 1) / chunk; // the last receives so far
  std::int64_t after = static_cast<std::int64_t>(out.receives.size()) - pieces;
  for_pieces(mine, chunk, [&](std::int64_t begin, std::int64_t end) {
    out.sends.push_back({ring.next(), sums + begin, end - begin, ++after});
  });
  std::int64_t sent = 0;
  for (int step = 0; step + 1 < ring.size(); ++step) {
    const bool last = step + 2 == ring.size();
    for_pieces(block(ring.wrap(ring.me - 1 - step)), chunk, [&](std::int64_t begin, std::int64_t end) {
      out.receives.push_back({ring.previous(), sums + begin, nullptr, end - begin, ++sent});
      if (last) return;
      const auto ready = static_cast<std::int64_t>(out.receives.size());
      out.sends.push_back({ring.next(), sums + begin, end - begin, ready});
    });
  }
}

void tree_all_reduce(const Ring& ring, const Memory& at, std::int64_t bytes, Schedule& out) {
  const int lowest = ring.me == 0 ? ring.size() : ring.me & -ring.me;
  const std::byte* own = at.terms;
  for (int bit = 1; bit < lowest && ring.me + bit < ring.size(); bit *= 2) {
    out.receives.push_back({ring.group[ring.me + bit], at.sums, own, bytes, 0});
    own = at.sums;
  }
  const auto children = static_cast<std::int64_t>(out.receives.size());
  if (ring.me != 0) {
    const int parent = ring.group[ring.me - lowest];
    out.sends.push_back({parent, own, bytes, children});
    out.receives.push_back({parent, at.sums, nullptr, bytes, 1});
  }
  const auto ready = static_cast<std::int64_t>(out.receives.size());
  for (std::int64_t i = children; i-- > 0;) out.sends.push_back({out.receives[i].peer, at.sums, bytes, ready});
}

void all_reduce(const Collective& c, const Ring& ring, const MessageSizes& sizes, Schedule& out) {
  expect(c.counts.size() == 1 && c.counts[0] >= 0, "all_reduce takes one count");
  const std::int64_t n = c.counts[0], element = size_of(c.dtype);
  const Memory at{bytes_of(c.send), bytes_of(c.recv), nullptr};
  expect(at.terms == at.sums || disjoint(at.terms, n * element, at.sums, n * element),
         "all_reduce: recv overlaps send but is not the same");
  if (n == 0) return;
  if (ring.size() == 1) {
    if (c.recv != c.send) std::memcpy(c.recv, c.send, static_cast<std::size_t>(n * element));
    return;
  }
  if (n * element <= std::min(sizes.tree, sizes.chunk)) return tree_all_reduce(ring, at, n * element, out);
  const auto block = [&](int j) { return Block{n * j / ring.size() * element, n * (j + 1) / ring.size() * element}; };
  reduce_round(ring, Memory{at.terms, at.sums, at.sums + block(ring.me).begin}, block, sizes.chunk, out);
  gather_round(ring, at.sums, block, sizes.chunk, out);
}

void reduce_scatter(const Collective& c, const Ring& ring, const MessageSizes& sizes, Schedule& out) {
  expect(c.counts.size() == ring.group.size(), "reduce_scatter takes one count per member");
  const std::int64_t element = size_of(c.dtype);
  std::int64_t total = 0;
  for (std::int64_t count : c.counts) {
    expect(count >= 0, "reduce_scatter: negative count");
    total += count * element;
  }
  const auto block = [&](int j) {
    const std::int64_t begin = std::accumulate(c.counts.begin(), c.counts.begin() + j, std::int64_t{0}) * element;
    return Block{begin, begin + c.counts[j] * element};
  };
  const Block mine = block(ring.me);
  std::byte* const send = bytes_of(c.send);
  std::byte* const recv = bytes_of(c.recv);
  const std::int64_t bytes = mine.end - mine.begin;
  expect(recv == send + mine.begin || disjoint(recv, bytes, send, total),
         "reduce_scatter: recv overlaps send elsewhere than at this rank's own chunk");
  if (ring.size() > 1) return reduce_round(ring, Memory{send, send, recv}, block, sizes.chunk, out);
  if (bytes > 0 && recv != send) std::memcpy(recv, send, static_cast<std::size_t>(bytes));
}

void copy_to_self(const Collective& c, int rank) {
  const auto is_self = [&](const Message& m) { return m.peer == rank; };
  const auto from = std::find_if(c.sends.begin(), c.sends.end(), is_self);
  const auto to = std::find_if(c.receives.begin(), c.receives.end(), is_self);
  if (from == c.sends.end() && to == c.receives.end()) return;
  expect(from != c.sends.end() && to != c.receives.end() && from->count == to->count,
         "exchange: what a rank sends to itself is not what it receives");
  if (from->count > 0 && from->data != to->data)
    std::memcpy(to->data, from->data, static_cast<std::size_t>(from->count * size_of(c.dtype)));
}

void exchange(const Collective& c, int rank, int size, const MessageSizes& sizes, Schedule& out) {
  expect(c.group.empty(), "exchange takes no group");
  copy_to_self(c, rank);
  const std::int64_t element = size_of(c.dtype);
  const auto check = [&](const Message& m) {
    expect(0 <= m.peer && m.peer < size && m.count >= 0, "exchange: bad message");
  };
  for (const Message& m : c.receives) {
    check(m);
    if (m.peer == rank) continue;
    for_pieces({0, m.count * element}, sizes.part, [&](std::int64_t begin, std::int64_t end) {
      out.receives.push_back({m.peer, bytes_of(m.data) + begin, nullptr, end - begin, 0});
    });
  }
  for (const Message& m : c.sends) {
    check(m);
    if (m.peer == rank) continue;
    for_pieces({0, m.count * element}, sizes.part, [&](std::int64_t begin, std::int64_t end) {
      out.sends.push_back({m.peer, bytes_of(m.data) + begin, end - begin, 0});
    });
  }
  // A sender's distance to its receiver is the receiver's distance from its sender, so both sides' windows always hold
  // the nearest message that is missing anywhere: no deadlock, however few are posted at a time. Pieces keep their
  // order because their addresses ascend (std::stable_sort would allocate).
  std::sort(out.sends.begin(), out.sends.end(), [&](const Send& a, const Send& b) {
    const int da = (a.peer - rank + size) % size, db = (b.peer - rank + size) % size;
    return da != db ? da < db : std::less<>()(a.from, b.from);
  });
  std::sort(out.receives.begin(), out.receives.end(), [&](const Receive& a, const Receive& b) {
    const int da = (rank - a.peer + size) % size, db = (rank - b.peer + size) % size;
    return da != db ? da < db : std::less<>()(a.into, b.into);
  });
}

} // namespace

void Schedule::clear() {
  receives.clear();
  sends.clear();
}

void build_schedule(const Collective& collective, int rank, int size, const MessageSizes& sizes, Schedule& out) {
  out.clear();
  switch (collective.kind) {
  case Kind::all_reduce:
    return all_reduce(collective, make_ring(collective.group, rank, size), sizes, out);
  case Kind::reduce_scatter:
    return reduce_scatter(collective, make_ring(collective.group, rank, size), sizes, out);
  case Kind::exchange:
    return exchange(collective, rank, size, sizes, out);
  }
  throw Bug("unknown collective");
}

std::int64_t received_bytes(const Schedule& schedule) {
  std::int64_t bytes = 0;
  for (const Receive& r : schedule.receives) bytes += r.bytes;
  return bytes;
}

} // namespace soybean::comm
