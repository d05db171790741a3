#pragma once
// What computing a node and moving a tensor take on a machine, in seconds. Hides the roofline and which links a step's
// messages cross. Every price depends on one node with its choices, or on one tensor with two tilings, and is a pure
// function: src/simulate adds them up along a program, a search may add them up over a graph.
//
// Compute: launch + max(flops / rate, bytes / bandwidth) of the fullest rank, which is the last one (the last block of
// a dim is its largest), as often as ranks take turns. Communication: rounds · latency + bytes of a rank · Σ flows on
// the fullest link / its bandwidth.
#include "graph/graph.hpp"
#include "machine/machine.hpp"
#include "ops/form.hpp"
#include "tiling/mesh.hpp"
#include "tiling/redistribution.hpp"

#include <cstdint>
#include <vector>

namespace soybean::machine {

/// A machine, the ranks of a run on it (host by host), and the precision: what prices depend on beside the graph.
struct Setting {
  Machine machine;
  tiling::Mesh mesh;
  Precision precision = Precision::fp32;
  double processor_share = 1; ///< of the processor's rates, that a rank has
  double turns = 1;           ///< ranks for each that can compute: kernels of one take so many times as long
  /// What a ring over each of the groups of neighbouring cuts, all at the same time, asks of the links.
  struct Ring {
    double latency = 0;          ///< of the slowest link it crosses
    double seconds_per_byte = 0; ///< that every rank sends
  };
  std::vector<std::vector<Ring>> rings; ///< [first cut][cuts - 1]
  const Ring& ring(int cut, int cuts) const {
    return rings[static_cast<std::size_t>(cut)][static_cast<std::size_t>(cuts - 1)];
  }
  /// Per level of links, the innermost first: over how many leading cuts ranks differ when a message between them
  /// takes that level or an outer one, and how many ranks' messages share one link of it.
  struct Level {
    int cuts = 0;
    double sharers = 1;
  };
  std::vector<Level> levels;
};

/// Throws Error when the machine has fewer ranks or no rates for the precision.
Setting make_setting(Machine machine, tiling::Mesh mesh, Precision precision);

/// What a kernel does on the fullest rank.
struct Amount {
  double flops = 0;
  double bytes = 0; ///< of its operands, each counted once
};
/// Of a node when cut i does choices[i].
Amount amount(const graph::Graph& graph, const graph::Node& node, const ops::Form& form, const tiling::Mesh& mesh,
              const std::vector<ops::Choice>& choices);

/// Seconds of one kernel. Never less for more flops or bytes.
double kernel_seconds(const Setting& setting, std::string_view op, const Amount& amount);

/// Seconds of a node on the fullest rank; 0 for one that only renames its operand (flatten, reshape in place).
double node_seconds(const Setting& setting, const graph::Graph& graph, const graph::Node& node, const ops::Form& form,
                    const std::vector<ops::Choice>& choices);

/// Seconds that a rank's part of a batch of so many bytes takes beside the program.
double batch_seconds(const Setting& setting, double bytes);

/// Seconds of one redistribution step.
struct StepSeconds {
  double network = 0; ///< from its start until the messages have arrived
  double local = 0;   ///< of kernels that pack, unpack and copy
};
StepSeconds step_seconds(const Setting& setting, const graph::Tensor& tensor, const tiling::Step& step);

/// Seconds of bringing a tensor from one tiling to another by tiling::path: the sum over its steps.
StepSeconds move_seconds(const Setting& setting, const graph::Tensor& tensor, const tiling::Tiling& from,
                         const tiling::Tiling& to);

} // namespace soybean::machine
