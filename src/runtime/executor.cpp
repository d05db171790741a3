#include "runtime/executor.hpp"

#include "base/error.hpp"
#include "device/staging.hpp"
#include "device/stream.hpp"
#include "kernels/kernel.hpp"
#include "program/frees.hpp"
#include "runtime/meter.hpp"
#include "runtime/transfer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>

namespace soybean::runtime {
namespace {

using device::TensorView;
using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;

/// A kernel's call with its blocks in place, and the calls that follow it where it does not take its epilogue along.
struct Compute {
  const kernels::Kernel* kernel = nullptr;
  const graph::Node* node = nullptr;
  std::vector<const graph::Node*> epilogue;
  std::vector<TensorView> inputs, outputs;
  void* scratch = nullptr;
  std::vector<Compute> after;
};

/// One instruction, ready to run: which of the two is filled follows from its kind. A wait refers to its start.
struct Ready {
  Kind kind = Kind::free;
  Compute compute;
  Transfer transfer;
  std::size_t start = 0;
  comm::Token token = 0;
};

TensorView make_view(const graph::Graph& graph, const Program& program, BufferId b, const Box& box, void* data) {
  const graph::Tensor& t = graph.tensors[program.buffers[b].tensor];
  return {.data = data,
          .dtype = t.dtype,
          .box = box,
          .global = t.shape,
          .spatial = device::block_spatial(box.extents, t.spatial)};
}

} // namespace

/// A program with its memory and its calls.
struct Executor::Prepared {
  Program program;
  program::Layout layout;
  std::vector<Ready> ready;
  Profile profile;
  device::Recording recording;
  comm::Counters launched;  ///< by each launch of the recording
  bool records = false;     ///< once it has run often enough
  std::size_t of_parts = 0; ///< metrics of the forward phase of one part of the batch
};

/// Metrics of one run, 8 bytes for each, and the mark behind their copies.
struct Executor::Queued {
  Queued(int device, std::size_t metrics) : values(device, static_cast<std::int64_t>(8 * metrics)), copied(device) {}
  device::HostBuffer values;
  device::Event copied;
  std::vector<DType> dtypes;
  std::size_t of_parts = 0; ///< how many metrics each part of the batch has; theirs come first
};

namespace {

kernels::Call call_of(const Compute& c, bool training) {
  return {.node = *c.node,
          .epilogue = c.epilogue,
          .inputs = c.inputs,
          .outputs = c.outputs,
          .scratch = c.scratch,
          .training = training};
}

/// Sizes and prepares the instructions of one program on one rank.
class Preparer {
public:
  Preparer(const graph::Graph& graph, const Program& program, const Context& context)
      : graph_(graph), program_(program), context_(context), last_sends_(program::last_sends(program)) {
    for (const program::Buffer& b : program.buffers)
      boxes_.push_back(tiling::block(b.tiling, graph.tensors[b.tensor].shape, context.mesh, context.rank));
  }

  program::Workspaces workspaces() const {
    program::Workspaces bytes;
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      std::int64_t need = 0;
      if (instruction.kind == Kind::compute) {
        need = scratch_bytes(compute(instruction, nullptr, nullptr));
      } else if (instruction.kind == Kind::start) {
        need = transfer(i, nullptr, nullptr).staging_bytes;
      }
      bytes.push_back(need);
    }
    return bytes;
  }

  std::vector<Ready> ready(const program::Layout& layout, const device::Arena& arena) const {
    std::vector<Ready> result(program_.instructions.size());
    std::map<std::int32_t, std::size_t> started;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      void* workspace = layout.workspace_offsets[i] >= 0 ? arena.at(layout.workspace_offsets[i]) : nullptr;
      Ready& r = result[i];
      r.kind = instruction.kind;
      switch (instruction.kind) {
      case Kind::compute:
        r.compute = compute(instruction, &layout, &arena);
        r.compute.scratch = workspace;
        for (Compute& after : r.compute.after) after.scratch = workspace;
        break;
      case Kind::slice:
        r.transfer = transfer(i, &layout, &arena);
        break;
      case Kind::start:
        r.transfer = transfer(i, &layout, &arena, workspace);
        started[instruction.token] = i;
        break;
      case Kind::wait:
        r.start = started.at(instruction.token);
        break;
      case Kind::free:
        break;
      }
    }
    return result;
  }

private:
  std::int64_t scratch_bytes(const Compute& c) const {
    std::int64_t need = 0;
    if (c.kernel->scratch_bytes) need = c.kernel->scratch_bytes(context_.exec, call_of(c, program_.training));
    for (const Compute& after : c.after) need = std::max(need, scratch_bytes(after));
    return need;
  }

  TensorView view(BufferId b, const program::Layout* layout, const device::Arena* arena) const {
    void* data = arena ? arena->at(layout->offsets[b]) : nullptr;
    return make_view(graph_, program_, b, boxes_[b], data);
  }

  Compute compute(const Instruction& instruction, const program::Layout* layout, const device::Arena* arena) const {
    Compute c;
    c.node = &graph_.nodes[instruction.node];
    c.kernel = &kernels::find(c.node->op, graph_.precision);
    for (BufferId b : instruction.inputs) c.inputs.push_back(view(b, layout, arena));
    for (BufferId b : instruction.outputs) c.outputs.push_back(view(b, layout, arena));
    if (c.kernel->takes_epilogue)
      for (graph::NodeId n : instruction.epilogue) c.epilogue.push_back(&graph_.nodes[n]);
    else
      unfold(instruction, c);
    return c;
  }

  /// One call after the other, each in the place of the one before.
  void unfold(const Instruction& instruction, Compute& c) const {
    std::size_t used = c.node->inputs.size();
    for (graph::NodeId n : instruction.epilogue) {
      Compute& after = c.after.emplace_back();
      after.node = &graph_.nodes[n];
      after.kernel = &kernels::find(after.node->op, graph_.precision);
      after.inputs = c.outputs;
      for (std::size_t k = 1; k < after.node->inputs.size(); ++k) after.inputs.push_back(c.inputs.at(used++));
      after.outputs = c.outputs;
    }
    c.inputs.resize(c.node->inputs.size());
  }

  Transfer transfer(std::size_t index, const program::Layout* layout, const device::Arena* arena,
                    void* staging = nullptr) const {
    const Instruction& instruction = program_.instructions[index];
    Transfer t = prepare_transfer({.mesh = context_.mesh,
                                   .rank = context_.rank,
                                   .step = instruction.step,
                                   .from = view(instruction.inputs[0], layout, arena),
                                   .to = view(instruction.outputs[0], layout, arena),
                                   .from_dies = last_sends_[index] != 0,
                                   .comm = &context_.comm},
                                  staging);
    t.collective.control = instruction.control;
    t.collective.label = program_.buffers[instruction.inputs[0]].name + " to " +
                         tiling::to_string(program_.buffers[instruction.outputs[0]].tiling);
    return t;
  }

  const graph::Graph& graph_;
  const Program& program_;
  const Context& context_;
  std::vector<char> last_sends_; // per instruction
  std::vector<Box> boxes_;
};

template<class T>
double as_double(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return static_cast<double>(value);
}

/// The scalar that lies at `data`, in the host's memory.
double scalar(DType dtype, const void* data) {
  switch (dtype) {
  case DType::f32:
    return as_double<float>(data);
  case DType::f64:
    return as_double<double>(data);
  case DType::i32:
    return as_double<std::int32_t>(data);
  }
  return 0;
}

/// What the host's data passes through on its way to and from an accelerator: buffers for each fed block, one scratch
/// for those that outlive a step. The same for all programs of a run.
struct Passages {
  std::int64_t fed_bytes = 0, scratch_bytes = 0;
  std::int64_t bytes() const { return fed_bytes + scratch_bytes; }
};

Passages passages(const graph::Graph& graph, const Program& program, const Context& context) {
  Passages bytes;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const program::Buffer& buffer = program.buffers[b];
    const Box box = tiling::block(buffer.tiling, graph.tensors[buffer.tensor].shape, context.mesh, context.rank);
    const TensorView view = make_view(graph, program, static_cast<BufferId>(b), box, nullptr);
    if (buffer.life == program::Life::fed) bytes.fed_bytes += device::Uploader::reserved_bytes(context.exec, view);
    if (buffer.life == program::Life::persistent)
      bytes.scratch_bytes = std::max(bytes.scratch_bytes, device::staging_bytes(context.exec, view));
  }
  return bytes;
}

/// How many metrics of the forward phase a program has for each part of the batch.
std::size_t metrics_of_a_part(const graph::Graph& graph, bool training) {
  const std::vector<graph::TensorId> metrics = graph::reported_metrics(graph, training);
  return static_cast<std::size_t>(std::count_if(metrics.begin(), metrics.end(), [&](graph::TensorId t) {
    return graph.nodes[graph.tensors[t].producer].phase == graph::Phase::forward;
  }));
}

} // namespace

Executor::Executor(const graph::Graph& graph, std::vector<Program> programs, const Context& context)
    : graph_(graph), context_(context), uploader_(context.exec) {
  ensure(!programs.empty(), "executor: no program");
  ensure(tiling::ranks(context.mesh) == context.comm.size(), "executor: the mesh is not one of these ranks");
  std::int64_t bytes = 0;
  for (Program& program : programs) {
    ensure(program.mesh == context.mesh, "executor: the program is for another mesh");
    auto prepared = std::make_unique<Prepared>();
    prepared->program = std::move(program);
    const program::Workspaces workspaces = Preparer(graph, prepared->program, context).workspaces();
    prepared->layout = program::assign_memory(graph, prepared->program, context.rank, workspaces);
    prepared->profile.instructions.resize(prepared->program.instructions.size());
    bytes = std::max(bytes, prepared->layout.arena_bytes);
    programs_.push_back(std::move(prepared));
  }
  arena_ = device::Arena(context.exec, bytes);
  std::vector<std::vector<int>> groups; // in program order, the same on all ranks
  const bool records = context.record_steps && context.exec.on_device() && context.comm.recordable();
  for (auto& p : programs_) {
    p->records = records;
    p->of_parts = metrics_of_a_part(graph, p->program.training);
    p->ready = Preparer(graph, p->program, context).ready(p->layout, arena_);
    for (const Ready& r : p->ready)
      if (r.transfer.communicates && !r.transfer.collective.group.empty())
        groups.push_back(r.transfer.collective.group);
  }
  context.comm.prepare(groups);
  list_blocks();
  for (const Block& block : fed_) uploader_.reserve(block.view);
  const Passages beside = passages(graph, programs_.front()->program, context);
  if (beside.scratch_bytes > 0) device::staging(context.exec, beside.scratch_bytes);
  beside_arena_ = beside.bytes();
  const auto slot = [&] { return std::make_unique<Queued>(context.exec.device(), graph.metrics.size()); };
  direct_ = slot();
  for (int s = 0; s < metric_slots; ++s) slots_.push_back(slot());
}

// While an error unwinds, what is queued may wait for ranks that never come, and what it uses can not be released.
Executor::~Executor() {
  if (std::uncaught_exceptions() > 0) context_.comm.abort();
}

void Executor::list_blocks() {
  const Prepared& first = *programs_.front();
  for (const auto& p : programs_)
    for (std::size_t b = 0; b < std::max(first.program.buffers.size(), p->program.buffers.size()); ++b) {
      const bool here = b < p->program.buffers.size() && p->program.buffers[b].life != program::Life::transient;
      const bool there = b < first.program.buffers.size() && first.program.buffers[b].life != program::Life::transient;
      if (!here && !there) break;
      ensure(here && there && p->program.buffers[b].name == first.program.buffers[b].name &&
                 p->layout.offsets[b] == first.layout.offsets[b],
             "executor: the programs do not share their persistent and fed buffers");
    }
  for (std::size_t b = 0; b < first.program.buffers.size(); ++b) {
    const program::Buffer& buffer = first.program.buffers[b];
    if (buffer.life == program::Life::transient) break;
    (buffer.life == program::Life::persistent ? persistent_ : fed_)
        .push_back({buffer.tensor, buffer.tiling, view(0, static_cast<BufferId>(b))});
  }
}

void Executor::run(int program) {
  constexpr std::int64_t runs_before = 2; // in which libraries set up what they keep
  Prepared& p = *programs_.at(program);
  if (p.records && !p.recording.ready() && p.profile.steps >= runs_before) p.records = record(program);
  if (p.recording.ready())
    launch(program);
  else
    run_instructions(program);
}

/// False where the accelerator can not record.
bool Executor::record(int program) {
  Prepared& p = *programs_[program];
  device::Stream& stream = context_.exec.stream();
  if (!p.recording.begin(stream)) return false;
  const Profile before = p.profile;
  try {
    context_.comm.begin_recording();
    run_instructions(program);
    p.launched = context_.comm.end_recording();
    p.recording.end(stream);
  } catch (const Error& error) {
    p.recording.abandon(stream);
    fail_running("executor: recording a step failed, {}. run.record_steps = false runs without recordings",
                 error.what());
  }
  p.profile = before; // nothing has run yet
  return true;
}

void Executor::launch(int program) {
  Prepared& p = *programs_[program];
  Meter meter(p.profile, context_.comm, {nullptr, graph_, p.program, context_.comm});
  p.recording.launch(context_.exec.stream());
  context_.comm.count_launch(p.launched);
  context_.comm.poll();
  meter.finish();
}

void Executor::run_instructions(int program) {
  Prepared& p = *programs_.at(program);
  Meter meter(p.profile, context_.comm, {trace_, graph_, p.program, context_.comm});
  int under_way = 0;
  for (std::size_t i = 0; i < p.ready.size(); ++i) {
    Ready& r = p.ready[i];
    switch (r.kind) {
    case Kind::compute:
      compute(program, i);
      if (under_way > 0) context_.comm.poll();
      meter.computed(i);
      meter.tracer().look();
      break;
    case Kind::slice:
      run_before(context_.exec, r.transfer);
      meter.computed(i);
      break;
    case Kind::start:
      run_before(context_.exec, r.transfer);
      meter.computed(i);
      if (!r.transfer.communicates) break;
      r.token = context_.comm.start(r.transfer.collective, context_.exec);
      ++under_way;
      meter.waited(i);
      meter.tracer().started(i, r.token);
      break;
    case Kind::wait: {
      const Ready& start = p.ready[r.start];
      if (start.transfer.communicates) {
        context_.comm.wait(start.token);
        --under_way;
        meter.waited(i);
        meter.tracer().waited(start.token);
        meter.tracer().look();
      }
      run_after(context_.exec, start.transfer);
      meter.computed(i);
      break;
    }
    case Kind::free:
      break;
    }
  }
  meter.finish();
}

void Executor::compute(int program, std::size_t instruction) {
  const Prepared& p = at(program);
  const Ready& r = p.ready.at(instruction);
  ensure(r.kind == Kind::compute, "executor: not a compute instruction");
  r.compute.kernel->run(context_.exec, call_of(r.compute, p.program.training));
  for (const Compute& after : r.compute.after) after.kernel->run(context_.exec, call_of(after, p.program.training));
}

const Executor::Prepared& Executor::at(int program) const {
  ensure(program >= 0 && program < static_cast<int>(programs_.size()), "executor: no such program");
  return *programs_[program];
}

const Block& Executor::persistent(graph::TensorId tensor) const {
  const auto found =
      std::find_if(persistent_.begin(), persistent_.end(), [&](const Block& b) { return b.tensor == tensor; });
  ensure(found != persistent_.end(), "executor: that tensor is not kept over steps");
  return *found;
}

TensorView Executor::view(int program, BufferId buffer) const {
  const Prepared& p = at(program);
  return make_view(graph_, p.program, buffer, p.layout.boxes[buffer], arena_.at(p.layout.offsets[buffer]));
}

void Executor::copy_metrics(int program, Queued& slot) const {
  device::Stream& stream = context_.exec.stream();
  slot.dtypes.clear();
  slot.of_parts = at(program).of_parts;
  for (BufferId b : at(program).program.metrics) {
    const TensorView metric = view(program, b);
    stream.copy(slot.values.data() + 8 * slot.dtypes.size(), metric.data, size_of(metric.dtype));
    slot.dtypes.push_back(metric.dtype);
  }
  slot.copied.record(stream);
}

/// Waits under the watchdog: collectives of the run may never come to an end.
std::vector<double> Executor::values_of(const Queued& slot) const {
  context_.comm.fence(slot.copied);
  std::vector<double> values;
  values.reserve(slot.dtypes.size());
  for (std::size_t k = 0; k < slot.dtypes.size(); ++k)
    values.push_back(scalar(slot.dtypes[k], slot.values.data() + 8 * k));
  const std::size_t each = slot.of_parts, all = each * static_cast<std::size_t>(graph_.microbatches);
  for (std::size_t k = each; k < all; ++k) values[k % each] += values[k];
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(each), values.begin() + static_cast<std::ptrdiff_t>(all));
  return values;
}

std::vector<double> Executor::metrics(int program) const {
  copy_metrics(program, *direct_);
  return values_of(*direct_);
}

void Executor::queue_metrics(int program) {
  ensure(queued_ - taken_ < metric_slots, "executor: more metrics queued than taken");
  copy_metrics(program, *slots_[queued_++ % metric_slots]);
}

std::vector<double> Executor::take_metrics() {
  ensure(taken_ < queued_, "executor: no metrics queued");
  return values_of(*slots_[taken_++ % metric_slots]);
}

const Program& Executor::program(int program) const {
  return at(program).program;
}

const program::Layout& Executor::layout(int program) const {
  return at(program).layout;
}

const Profile& Executor::profile(int program) const {
  return at(program).profile;
}

std::int64_t memory_bytes(const graph::Graph& graph, const std::vector<Program>& programs, const Context& context) {
  std::int64_t bytes = 0;
  for (const Program& program : programs) {
    const program::Workspaces workspaces = Preparer(graph, program, context).workspaces();
    bytes = std::max(bytes, program::assign_memory(graph, program, context.rank, workspaces).arena_bytes);
  }
  return bytes + passages(graph, programs.front(), context).bytes();
}

} // namespace soybean::runtime
