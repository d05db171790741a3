#pragma once
// A serial interpreter of graphs: the "serial result" that everything parallel is compared with. Holds every tensor
// whole, in its own memory, and runs the nodes one after another with the kernels of the graph's precision: no plan,
// no lowering, no in-place, no arena. Also runs a single node on blocks.
#include "graph/graph.hpp"
#include "kernels/kernel.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace soybean::support {

/// A block of a tensor and its memory (64-byte aligned, physical order). New blocks hold NaN (i32: −1), so that what
/// a kernel forgets to write is seen.
class Block {
public:
  Block(const graph::Tensor& tensor, Box box);
  Block(Block&&) noexcept = default;
  Block& operator=(Block&&) noexcept = default;

  const device::TensorView& view() const { return view_; }
  std::int64_t size() const { return view_.size(); }
  double get(std::int64_t i) const; ///< element i in physical order
  void set(std::int64_t i, double value);
  double at(const Shape& position) const; ///< by local logical position
  Block copy() const;

private:
  struct Free {
    void operator()(void* memory) const noexcept;
  };
  Block() = default;
  std::unique_ptr<void, Free> memory_;
  device::TensorView view_;
};

/// All elements in logical (row-major) order.
std::vector<double> logical(const Block& block);
/// The inverse: values in logical order.
void set_logical(Block& block, std::span<const double> values);
/// The part `box` (global, inside block's) as a block of its own.
Block slice(const graph::Tensor& tensor, const Block& block, const Box& box);

using Values = std::vector<Block>; ///< one whole block per tensor of a graph

Values allocate(const graph::Graph& graph);

/// Fills every tensor without producer, each element a function of (seed, tensor name, logical index): inputs,
/// parameters and state uniform in [-1, 1), those that begin as a constant in [0.5, 1.5), means of squares in [2, 3)
/// (rounded to float in every precision), labels any class, sample weights
/// 1/batch but 0 for the last of several rows, hyper (0.1, 3, 0.9, …).
void fill_sources(const graph::Graph& graph, Values& values, std::uint64_t seed);

struct NodeOptions {
  bool training = true;
};
/// Runs one node on blocks of its operands, in the host's memory, with scratch of its own; on an accelerator by way of
/// copies.
void run_node(const device::Exec& exec, const graph::Graph& graph, const graph::Node& node,
              std::span<const device::TensorView> inputs, std::span<const device::TensorView> outputs,
              const NodeOptions& options = {});

enum class Part : std::uint8_t { forward, everything };
/// Runs the nodes of a graph in order on whole tensors; not in training: those that validation needs.
void run_serial(const device::Exec& exec, const graph::Graph& graph, Values& values, Part part = Part::everything,
                const NodeOptions& options = {});

/// Ends a step: parameters and state take their next values.
void take_next(const graph::Graph& graph, Values& values);

} // namespace soybean::support
