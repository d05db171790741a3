#include "program/overlap.hpp"

#include "program/frees.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace soybean::program {
namespace {

/// How many computations one that waits may be passed by.
constexpr std::size_t reach = 16;

/// Per instruction: how many that have to come before it have no place yet, and those it has to come before.
struct Dependences {
  std::vector<std::size_t> missing;
  std::vector<std::vector<std::size_t>> followers;
};

/// Goes through a program once and notes who wrote and who read each buffer last.
class Follower {
public:
  explicit Follower(const Program& program) : program_(program), uses_(program.buffers.size()) {
    result_.missing.assign(program.instructions.size(), 0);
    result_.followers.resize(program.instructions.size());
  }

  Dependences run() {
    const std::vector<std::size_t> starts = starts_of(program_);
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      const bool waits = instruction.kind == Kind::wait; // reads and writes what its start does, and comes after that
      use(waits ? starts[static_cast<std::size_t>(instruction.token)] : i, i);
    }
    return std::move(result_);
  }

private:
  struct Uses {
    std::size_t writer = none;
    std::vector<std::size_t> readers; ///< since it was written
  };
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// Instruction `at` reads and writes the buffers of `operands`.
  void use(std::size_t operands, std::size_t at) {
    const Instruction& instruction = program_.instructions[operands];
    for (const BufferId b : instruction.inputs) {
      order(uses_[b].writer, at);
      uses_[b].readers.push_back(at);
    }
    for (const BufferId b : instruction.outputs) {
      order(uses_[b].writer, at);
      for (const std::size_t reader : uses_[b].readers) order(reader, at);
      uses_[b] = {.writer = at, .readers = {}};
    }
  }

  void order(std::size_t before, std::size_t after) {
    if (before == none || before == after) return;
    std::vector<std::size_t>& followers = result_.followers[before];
    if (!followers.empty() && followers.back() == after) return; // named by another buffer
    followers.push_back(after);
    ++result_.missing[after];
  }

  const Program& program_;
  std::vector<Uses> uses_; // per buffer
  Dependences result_;
};

/// What the transient buffers of the fullest rank take as instructions get their places; sharing left out.
class Memory {
public:
  Memory(const graph::Graph& graph, const Program& program)
      : program_(program),
        starts_(starts_of(program)),
        bytes_(program.buffers.size(), 0),
        users_(program.buffers.size(), 0),
        begun_(program.buffers.size(), 0) {
    for (std::size_t b = 0; b < bytes_.size(); ++b) {
      if (program.buffers[b].life != Life::transient) continue;
      const graph::Tensor& tensor = graph.tensors[program.buffers[b].tensor];
      bytes_[b] = size_of(tensor.dtype) * volume(tiling::block(program.buffers[b].tiling, tensor.shape, program.mesh,
                                                               tiling::ranks(program.mesh) - 1));
    }
    for (std::size_t i = 0; i < program.instructions.size(); ++i)
      for_operands(i, [&](BufferId b, bool) { ++users_[b]; });
    for (const BufferId metric : program.metrics) ++users_[metric]; // stays to the end
  }

  /// While the instruction runs, were it the next.
  std::int64_t with(std::size_t instruction) const {
    std::int64_t bytes = alive_;
    for_operands(instruction, [&](BufferId b, bool output) { bytes += output && !begun_[b] ? bytes_[b] : 0; });
    return bytes;
  }
  void place(std::size_t instruction) {
    alive_ = with(instruction);
    for_operands(instruction, [&](BufferId b, bool output) {
      if (output) begun_[b] = 1;
      if (--users_[b] == 0) alive_ -= bytes_[b];
    });
  }

private:
  /// f(buffer, whether it is an output); a wait has its start's operands.
  template<class F>
  void for_operands(std::size_t instruction, const F& f) const {
    const Instruction* i = &program_.instructions[instruction];
    if (i->kind == Kind::wait) i = &program_.instructions[starts_[static_cast<std::size_t>(i->token)]];
    for (const BufferId b : i->inputs) f(b, false);
    for (const BufferId b : i->outputs) f(b, true);
  }

  const Program& program_;
  std::vector<std::size_t> starts_; // per token
  std::vector<std::int64_t> bytes_; // per buffer
  std::vector<int> users_;          // that have no place yet
  std::vector<char> begun_;
  std::int64_t alive_ = 0;
};

/// The most that the buffers take in the order the program has.
std::int64_t peak_of(const Program& program, Memory memory) {
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    peak = std::max(peak, memory.with(i));
    memory.place(i);
  }
  return peak;
}

class Schedule {
public:
  Schedule(const graph::Graph& graph, const Program& program)
      : graph_(graph),
        program_(program),
        dependences_(Follower(program).run()),
        memory_(graph, program),
        peak_(peak_of(program, memory_)),
        saves_(graph.microbatches > 1 || graph.recompute != graph::Recompute::none),
        placed_(program.instructions.size(), 0),
        computations_(program.instructions.size() + 1, 0) {
    for (std::size_t i = 0; i < placed_.size(); ++i) computations_[i + 1] = computations_[i] + (computes(i) ? 1 : 0);
    for (std::size_t i = 0; i < placed_.size(); ++i)
      if (dependences_.missing[i] == 0) ready(i);
  }

  std::vector<Instruction> run() {
    std::vector<Instruction> order;
    order.reserve(placed_.size());
    while (order.size() < placed_.size()) {
      const std::size_t next = choose();
      ready_.erase(next), waits_.erase(next);
      placed_[next] = 1;
      memory_.place(next);
      while (first_ < placed_.size() && (placed_[first_] || !computes(first_))) ++first_;
      for (const std::size_t follower : dependences_.followers[next])
        if (--dependences_.missing[follower] == 0) ready(follower);
      order.push_back(program_.instructions[next]);
    }
    return order;
  }

private:
  /// Nothing of this step reads what it makes but other updates: it may wait as long as it likes.
  bool updates(std::size_t i) const {
    return graph_.nodes[program_.instructions[i].node].phase == graph::Phase::update;
  }
  /// A computation others should not run far ahead of.
  bool computes(std::size_t i) const { return program_.instructions[i].kind == Kind::compute && !updates(i); }

  void ready(std::size_t i) { (program_.instructions[i].kind == Kind::wait ? waits_ : ready_).insert(i); }

  bool in_reach(std::size_t i) const { return i < first_ || computations_[i] - computations_[first_] <= reach; }

  /// No more is taken than the program takes anyway.
  bool fits(std::size_t i) const { return memory_.with(i) <= peak_; }

  /// The first start there is, else the first of the others, else the wait that is needed first. In a program that
  /// saves memory nothing but waits leaves its place, and these only as long as it fits.
  std::size_t choose() const {
    std::size_t found = placed_.size();
    for (const std::size_t i : ready_) {
      if (!in_reach(i)) break;
      if (i > first_ && (saves_ || !fits(i))) continue;
      if (program_.instructions[i].kind == Kind::start) return i;
      found = std::min(found, i);
    }
    if (found < placed_.size() && (!saves_ || waits_.empty() || fits(found))) return found;
    if (waits_.empty()) return *ready_.begin();
    return *std::min_element(waits_.begin(), waits_.end(),
                             [&](std::size_t a, std::size_t b) { return needed(a) < needed(b); });
  }

  /// When a wait's result is asked for first: by updates after everything else.
  std::pair<bool, std::size_t> needed(std::size_t wait) const {
    std::pair<bool, std::size_t> first{true, wait};
    for (const std::size_t follower : dependences_.followers[wait])
      first = std::min(first, std::pair{updates(follower), follower});
    return first;
  }

  const graph::Graph& graph_;
  const Program& program_;
  Dependences dependences_;
  Memory memory_;
  std::int64_t peak_; // in the program's own order
  bool saves_;
  std::vector<char> placed_;
  std::vector<std::size_t> computations_; // before each instruction, updates left out
  std::set<std::size_t> ready_, waits_;   // with nothing missing
  std::size_t first_ = 0;                 // the first computation without a place
};

} // namespace

void overlap(const graph::Graph& graph, Program& program) {
  std::vector<Instruction>& all = program.instructions;
  const auto sends = [](const Instruction& i) { return i.kind == Kind::start && i.step.elements > 0; };
  if (std::none_of(all.begin(), all.end(), sends)) return;
  std::erase_if(all, [](const Instruction& i) { return i.kind == Kind::free; });
  all = Schedule(graph, program).run();
  insert_frees(program);
}

} // namespace soybean::program
