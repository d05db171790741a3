// Placement of buffers and workspaces in the arena: offline best fit over known lifetimes. Several orders of placing
// are tried (by size, by lifetime, as they come) and the one with the lowest peak is kept.
#include "program/memory.hpp"

#include "base/error.hpp"
#include "program/staging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace soybean::program {
namespace {

/// Memory that is in use from instruction `begin` to instruction `end`, both included.
struct Span {
  std::int64_t begin = -1, end = -1;
  std::int64_t bytes = 0;
  std::int64_t offset = -1;
};

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

BufferId root_of(const Program& program, BufferId b) {
  while (program.buffers[b].alias >= 0) b = program.buffers[b].alias;
  return b;
}

std::int64_t bytes_of(const graph::Graph& graph, const Program& program, const std::vector<Box>& boxes, BufferId b) {
  return aligned(volume(boxes[b]) * size_of(graph.tensors[program.buffers[b].tensor].dtype));
}

/// Spans of the transient buffers (by root of their aliases; others stay empty), then of the workspaces.
std::vector<Span> spans(const graph::Graph& graph, const Program& program, const std::vector<Box>& boxes,
                        const Workspaces& workspaces) {
  const auto buffers = static_cast<std::int64_t>(program.buffers.size());
  const auto count = static_cast<std::int64_t>(program.instructions.size());
  std::vector<Span> result(program.buffers.size() + program.instructions.size());
  std::vector<char> freed(program.buffers.size(), 0);
  std::map<std::int32_t, std::int64_t> started;
  const auto use = [&](BufferId b, std::int64_t at) {
    if (program.buffers[b].life != Life::transient) return;
    Span& span = result[root_of(program, b)];
    if (span.begin < 0) span.begin = at;
    span.end = std::max(span.end, at);
    span.bytes = std::max(span.bytes, bytes_of(graph, program, boxes, b));
  };
  for (std::int64_t i = 0; i < count; ++i) {
    const Instruction& instruction = program.instructions[i];
    for (BufferId b : instruction.inputs) use(b, i);
    for (BufferId b : instruction.outputs) use(b, i);
    if (instruction.kind == Kind::free)
      for (BufferId b : instruction.inputs) freed[b] = 1;
    if (instruction.kind == Kind::start) started[instruction.token] = i;
    if (workspaces[i] > 0) result[buffers + i] = {i, i, aligned(workspaces[i]), -1};
    if (instruction.kind == Kind::wait) { // staging and both buffers are needed up to here
      const std::int64_t start = started.at(instruction.token);
      if (workspaces[start] > 0) result[buffers + start].end = i;
      for (BufferId b : program.instructions[start].inputs) use(b, i);
      for (BufferId b : program.instructions[start].outputs) use(b, i);
    }
  }
  for (BufferId b = 0; b < buffers; ++b) // what is never freed stays to the end
    if (result[root_of(program, b)].begin >= 0 && !freed[b]) use(b, count);
  return result;
}

/// The freed position of a buffer is the instruction of the `free`, so memory may be used again right after it.
bool alive_together(const Span& a, const Span& b) {
  return a.begin <= b.end && b.begin <= a.end;
}

/// Places spans in the given order, each into the smallest gap that fits. Returns the end of the highest one.
std::int64_t place(std::vector<Span>& all, const std::vector<std::size_t>& order, std::int64_t base) {
  std::int64_t top = base;
  std::vector<std::size_t> placed; // by offset
  for (std::size_t id : order) {
    Span& span = all[id];
    std::int64_t at = base, best = -1, best_gap = 0;
    for (std::size_t other : placed) {
      const Span& o = all[other];
      if (!alive_together(span, o)) continue;
      const std::int64_t gap = o.offset - at;
      if (gap >= span.bytes && (best < 0 || gap < best_gap)) best = at, best_gap = gap;
      at = std::max(at, o.offset + o.bytes);
    }
    span.offset = best >= 0 ? best : at;
    top = std::max(top, span.offset + span.bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), span.offset,
                                           [&](std::int64_t o, std::size_t p) { return o < all[p].offset; });
    placed.insert(position, id);
  }
  return top;
}

/// Tries each order and leaves the best one's offsets in `all`.
std::int64_t place_best(std::vector<Span>& all, std::int64_t base) {
  std::vector<std::size_t> order;
  for (std::size_t s = 0; s < all.size(); ++s)
    if (all[s].bytes > 0) order.push_back(s);
  const auto length = [&](std::size_t s) { return all[s].end - all[s].begin; };
  using Before = std::function<bool(std::size_t, std::size_t)>;
  const std::vector<Before> orders = {
      [&](std::size_t a, std::size_t b) { return all[a].bytes > all[b].bytes; },
      [&](std::size_t a, std::size_t b) { return all[a].begin < all[b].begin; },
      [&](std::size_t a, std::size_t b) { return length(a) > length(b); },
      [&](std::size_t a, std::size_t b) { return all[a].bytes * (length(a) + 1) > all[b].bytes * (length(b) + 1); },
  };
  std::vector<Span> best;
  std::int64_t lowest = -1;
  for (const Before& before : orders) {
    std::vector<std::size_t> sorted = order;
    std::stable_sort(sorted.begin(), sorted.end(), before);
    std::vector<Span> attempt = all;
    const std::int64_t top = place(attempt, sorted, base);
    if (lowest >= 0 && top >= lowest) continue;
    lowest = top;
    best = std::move(attempt);
  }
  all = std::move(best);
  return lowest;
}

std::vector<Box> boxes_of(const graph::Graph& graph, const Program& program, int rank) {
  std::vector<Box> boxes;
  boxes.reserve(program.buffers.size());
  for (const Buffer& b : program.buffers)
    boxes.push_back(tiling::block(b.tiling, graph.tensors[b.tensor].shape, program.mesh, rank));
  return boxes;
}

} // namespace

std::int64_t peak_bytes(const graph::Graph& graph, const plan::Plan& plan) {
  Program program = lower(graph, plan, Mode::train);
  run_passes(graph, program);
  const int fullest = tiling::ranks(plan.mesh) - 1;
  return assign_memory(graph, program, fullest, staging(graph, program, fullest)).arena_bytes;
}

Layout assign_memory(const graph::Graph& graph, const Program& program, int rank, const Workspaces& workspaces) {
  ensure(workspaces.size() == program.instructions.size(), "memory: one workspace per instruction");
  Layout layout;
  layout.boxes = boxes_of(graph, program, rank);
  layout.offsets.assign(program.buffers.size(), 0);
  std::int64_t base = 0;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].life == Life::transient) continue;
    layout.offsets[b] = base;
    base += bytes_of(graph, program, layout.boxes, static_cast<BufferId>(b));
    if (program.buffers[b].life == Life::persistent) layout.persistent_bytes = base;
  }
  std::vector<Span> all = spans(graph, program, layout.boxes, workspaces);
  layout.arena_bytes = place_best(all, base);
  for (std::size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].life == Life::transient) {
      const Span& span = all[root_of(program, static_cast<BufferId>(b))];
      layout.offsets[b] = span.bytes > 0 ? span.offset : base; // nothing to hold: anywhere
    }
  layout.workspace_offsets.assign(program.instructions.size(), -1);
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    if (workspaces[i] > 0) layout.workspace_offsets[i] = all[program.buffers.size() + i].offset;
  verify(graph, program, layout, workspaces);
  return layout;
}

std::vector<Lifetime> lifetimes(const graph::Graph& graph, const Program& program, const Layout& layout) {
  const std::vector<Span> all = spans(graph, program, layout.boxes, Workspaces(program.instructions.size(), 0));
  std::vector<Lifetime> lives;
  for (std::size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].life == Life::transient && all[b].bytes > 0)
      lives.push_back({static_cast<BufferId>(b), all[b].begin, all[b].end, all[b].bytes});
  return lives;
}

void verify(const graph::Graph& graph, const Program& program, const Layout& layout, const Workspaces& workspaces) {
  struct Named {
    Span span;
    std::string name;
  };
  std::vector<Named> all;
  const auto end = static_cast<std::int64_t>(program.instructions.size());
  std::vector<Span> lives = spans(graph, program, layout.boxes, workspaces);
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    Span span = lives[b];
    if (buffer.life != Life::transient)
      span = {-1, end, bytes_of(graph, program, layout.boxes, static_cast<BufferId>(b)), -1};
    ensure(buffer.alias < 0 || layout.offsets[b] == layout.offsets[buffer.alias],
           buffer.name + " is not where its alias is");
    span.offset = layout.offsets[b];
    if (span.bytes > 0) all.push_back({span, buffer.name});
  }
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    Span span = lives[program.buffers.size() + i];
    span.offset = layout.workspace_offsets[i];
    if (span.bytes > 0) all.push_back({span, fmt::format("the workspace of instruction {}", i)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Named& a, const Named& b) { return a.span.offset < b.span.offset; });
  for (std::size_t a = 0; a < all.size(); ++a) {
    const Span& x = all[a].span;
    ensure(x.offset >= 0 && x.offset % alignment == 0, all[a].name + " is not aligned");
    ensure(x.offset + x.bytes <= layout.arena_bytes, all[a].name + " is not within the arena");
    for (std::size_t b = a + 1; b < all.size() && all[b].span.offset < x.offset + x.bytes; ++b)
      ensure(!alive_together(x, all[b].span),
             all[a].name + " and " + all[b].name + " are alive together and overlap in memory");
  }
}

} // namespace soybean::program
