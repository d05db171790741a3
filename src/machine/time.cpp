#include "machine/time.hpp"

#include "base/error.hpp"
#include "ops/operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

namespace soybean::machine {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

/// Ranks between neighbours along a cut.
std::int64_t stride(const tiling::Mesh& mesh, std::size_t cut) {
  std::int64_t product = 1;
  for (std::size_t i = cut + 1; i < mesh.cuts.size(); ++i) product *= mesh.cuts[i];
  return product;
}

/// Ranks of a group of the level below link `level`.
std::int64_t inner_ranks(const Machine& machine, std::size_t level) {
  return level == 0 ? 1 : machine.links[level - 1].ranks;
}

/// The level a message between two ranks takes.
std::size_t level_between(const Machine& machine, std::int64_t a, std::int64_t b) {
  std::size_t level = 0;
  while (machine.links[level].ranks != 0 && a / machine.links[level].ranks != b / machine.links[level].ranks) ++level;
  return level;
}

/// Which of a level's links a rank's messages go through.
std::int64_t link_of(const Machine& machine, std::size_t level, std::int64_t rank) {
  const Link& link = machine.links[level];
  if (link.per == Per::rank) return rank;
  if (link.per == Per::group) return rank / inner_ranks(machine, level);
  return link.ranks == 0 ? 0 : rank / link.ranks;
}

/// Every rank sends to the next one of its group: counts what each link carries.
Setting::Ring make_ring(const Machine& machine, const tiling::Mesh& mesh, std::size_t cut, std::size_t cuts) {
  const std::int64_t ranks = tiling::ranks(mesh), step = stride(mesh, cut + cuts - 1),
                     parts = tiling::parts(mesh, static_cast<int>(cut), static_cast<int>(cuts));
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> flows; // by level and link
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t next = rank / step % parts + 1 < parts ? rank + step : rank - (parts - 1) * step;
    const std::size_t level = level_between(machine, rank, next);
    ++flows[{level, link_of(machine, level, rank)}];
  }
  Setting::Ring ring;
  for (const auto& [place, count] : flows) {
    const Link& link = machine.links[place.first];
    ring.latency = std::max(ring.latency, link.latency);
    ring.seconds_per_byte = std::max(ring.seconds_per_byte, static_cast<double>(count) / link.bandwidth);
  }
  return ring;
}

/// Groups of so many ranks are told apart by the leading cuts; where hosts and cuts do not fit, by one more than that,
/// which takes some messages inside a group for messages between groups.
int cuts_between(const tiling::Mesh& mesh, std::int64_t group) {
  std::int64_t inside = 1;
  auto cuts = static_cast<int>(mesh.cuts.size());
  while (cuts > 0 && group % (inside * mesh.cuts[cuts - 1]) == 0) inside *= mesh.cuts[--cuts];
  return cuts;
}

Setting::Level make_level(const Machine& machine, const tiling::Mesh& mesh, std::size_t level) {
  const Link& link = machine.links[level];
  const std::int64_t ranks = tiling::ranks(mesh), inner = inner_ranks(machine, level);
  Setting::Level result{.cuts = cuts_between(mesh, inner)};
  if (link.per == Per::group) result.sharers = static_cast<double>(std::min(inner, ranks));
  if (link.per == Per::all) result.sharers = static_cast<double>(link.ranks == 0 ? ranks : std::min(link.ranks, ranks));
  return result;
}

/// Elements of a dim in the last of `parts` blocks.
std::int64_t last_block(std::int64_t extent, std::int64_t unit, std::int64_t parts) {
  return extent - tiling::block_range(extent, unit, parts, parts - 1).begin;
}

/// Elements of a dim that the fullest of `parts` ranks needs: one with halos on both sides, if it has any.
std::int64_t fullest(const ops::OperandDim& dim, std::int64_t extent, std::int64_t parts) {
  if (parts == 1) return extent;
  if (dim.halo.reach == tiling::Reach::none) return last_block(extent, dim.unit, parts);
  const tiling::Entry entry = tiling::split(0, dim.unit, dim.halo);
  std::int64_t most = 0;
  for (std::int64_t j = 0; j < parts; ++j) {
    const tiling::Range range = tiling::part_range(entry, extent, parts, j);
    most = std::max(most, range.end - range.begin);
  }
  return most;
}

double product_of_blocks(const Tensor& tensor, const ops::OperandForm& dims, const std::vector<std::int64_t>& parts) {
  double elements = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::int64_t extent = tensor.shape[d];
    elements *= static_cast<double>(
        dims[d].index < 0 ? extent : fullest(dims[d], extent, parts[static_cast<std::size_t>(dims[d].index)]));
  }
  return elements;
}

double bytes_of_block(const Tensor& tensor, const tiling::Tiling& tiling, const tiling::Mesh& mesh) {
  const Box box = tiling::block(tiling, tensor.shape, mesh, tiling::ranks(mesh) - 1);
  return static_cast<double>(volume(box) * size_of(tensor.dtype));
}

/// Whether blocks of the step differ along a dim but the outermost, so that what is sent is scattered in memory.
bool is_scattered(const tiling::Step& step) {
  for (std::size_t cut = 0; cut < step.from.size(); ++cut) {
    const tiling::Entry &from = step.from[cut], &to = step.to[cut];
    if (from == to) continue;
    for (const tiling::Entry& entry : {from, to})
      if (entry.kind == tiling::Kind::split && entry.dim > 0) return true;
  }
  return false;
}

double copy_seconds(const Setting& setting, double bytes) { // read and written
  return kernel_seconds(setting, "", {.flops = 0, .bytes = 2 * bytes});
}

StepSeconds ring_seconds(const Setting& setting, const Tensor& tensor, const tiling::Step& step) {
  const Setting::Ring& ring = setting.ring(step.cut, step.cuts);
  const int parts = tiling::parts(setting.mesh, step.cut, step.cuts);
  const double received = static_cast<double>(step.elements * size_of(tensor.dtype)) / tiling::ranks(setting.mesh);
  const bool all = step.kind == tiling::StepKind::all_reduce;
  StepSeconds seconds;
  seconds.network = (all ? 2 : 1) * (parts - 1) * ring.latency + received * ring.seconds_per_byte;
  if (all) { // small ones go up and down a tree
    const int rounds = 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(parts - 1)));
    const double whole = received * parts / (2.0 * (parts - 1));
    seconds.network = std::min(seconds.network, rounds * (ring.latency + whole * ring.seconds_per_byte));
  } else if (is_scattered(step)) {
    seconds.local = copy_seconds(setting, bytes_of_block(tensor, step.from, setting.mesh));
  }
  return seconds;
}

StepSeconds exchange_seconds(const Setting& setting, const Tensor& tensor, const tiling::Step& step) {
  const auto rank_bytes = [&](std::int64_t elements) {
    return static_cast<double>(elements * size_of(tensor.dtype)) / tiling::ranks(setting.mesh);
  };
  StepSeconds seconds;
  double latency = 0;
  std::int64_t within = step.elements; // crosses this level or an outer one
  for (std::size_t level = 0; level < setting.levels.size(); ++level) {
    const bool outermost = level + 1 == setting.levels.size();
    const std::int64_t beyond = outermost ? 0
                                          : tiling::elements_from_outside(setting.mesh, tensor.shape, step.from,
                                                                          step.to, setting.levels[level + 1].cuts);
    if (const std::int64_t crossing = within - beyond; crossing > 0) {
      const Link& link = setting.machine.links[level];
      latency = std::max(latency, link.latency);
      seconds.network =
          std::max(seconds.network, rank_bytes(crossing) * setting.levels[level].sharers / link.bandwidth);
    }
    within = beyond;
  }
  seconds.network += latency;
  const double own = bytes_of_block(tensor, step.to, setting.mesh), received = rank_bytes(step.elements);
  seconds.local = copy_seconds(setting, std::max(0.0, own - received)); // what the rank has already
  if (is_scattered(step)) seconds.local += 2 * copy_seconds(setting, received);
  return seconds;
}

/// The ranks of a host share the processor; where they are more than can compute, one waits for the other's turn.
void take_turns(Setting& setting) {
  Machine& m = setting.machine;
  const std::int64_t ranks = tiling::ranks(setting.mesh);
  const std::int64_t on_host = m.ranks_per_host == 0 ? ranks : std::min<std::int64_t>(ranks, m.ranks_per_host);
  const std::int64_t computing = m.processor.cores == 0 ? on_host : std::min(on_host, m.processor.cores);
  setting.turns = static_cast<double>(on_host) / static_cast<double>(computing);
  if (m.processor.shared) setting.processor_share = 1.0 / static_cast<double>(computing);
  if (setting.turns > 1)
    for (Link& link : m.links) link.latency += (setting.turns - 1) * m.processor.turn;
}

} // namespace

Setting make_setting(Machine machine, tiling::Mesh mesh, Precision precision) {
  const int ranks = tiling::ranks(mesh);
  static_cast<void>(ranks_on_hosts(machine, ranks));
  if (machine.rates(precision).peak == 0)
    fail("{}: processor, got no rates for {} expected a table [processor.{}]. train.precision asks for it",
         machine.file, to_string(precision), to_string(precision));
  Setting setting{.machine = std::move(machine), .mesh = std::move(mesh), .precision = precision};
  const Machine& m = setting.machine;
  take_turns(setting);
  const std::size_t cuts = setting.mesh.cuts.size();
  for (std::size_t cut = 0; cut < cuts; ++cut) {
    setting.rings.emplace_back();
    for (std::size_t count = 1; cut + count <= cuts; ++count)
      setting.rings.back().push_back(make_ring(m, setting.mesh, cut, count));
  }
  for (std::size_t level = 0; level < m.links.size(); ++level)
    setting.levels.push_back(make_level(m, setting.mesh, level));
  return setting;
}

Amount amount(const Graph& graph, const Node& node, const ops::Form& form, const tiling::Mesh& mesh,
              const std::vector<ops::Choice>& choices) {
  if (choices.size() != mesh.cuts.size()) ensure(false, fmt::format("node '{}' needs one choice per cut", node.name));
  std::vector<std::int64_t> parts(form.indices.size(), 1);
  for (std::size_t cut = 0; cut < choices.size(); ++cut)
    if (choices[cut] >= 0) parts[static_cast<std::size_t>(choices[cut])] *= mesh.cuts[cut];
  std::vector<double> fraction(form.indices.size(), 1);
  Amount result;
  const auto add = [&](const std::vector<graph::TensorId>& tensors, const std::vector<ops::OperandForm>& operands) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& tensor = graph.tensors[tensors[i]];
      result.bytes += product_of_blocks(tensor, operands[i], parts) * static_cast<double>(size_of(tensor.dtype));
      for (std::size_t d = 0; d < operands[i].size(); ++d) {
        const auto& [index, unit, halo] = operands[i][d];
        if (index < 0 || parts[static_cast<std::size_t>(index)] == 1 || halo.reach != tiling::Reach::none) continue;
        fraction[static_cast<std::size_t>(index)] =
            static_cast<double>(last_block(tensor.shape[d], unit, parts[static_cast<std::size_t>(index)])) /
            static_cast<double>(tensor.shape[d]);
      }
    }
  };
  add(node.inputs, form.inputs);
  add(node.outputs, form.outputs);
  result.flops = ops::flops(graph, node);
  for (const double f : fraction) result.flops *= f;
  return result;
}

double kernel_seconds(const Setting& setting, std::string_view op, const Amount& amount) {
  const Processor& p = setting.machine.processor;
  const Rates& rates = setting.machine.rates(setting.precision);
  const Work work = work_of(op);
  const double share = setting.processor_share; // of a host: sizes are those of all its ranks together
  double rate = work == Work::products       ? rates.products
                : work == Work::convolutions ? rates.convolutions
                                             : rates.arithmetic;
  double flops = amount.flops;
  const auto own_rates = rates.operators.find(op);
  if (own_rates != rates.operators.end()) rate = rate_at(own_rates->second, flops / share);
  const bool by_size = own_rates != rates.operators.end() && own_rates->second.size() > 1;
  if (work != Work::arithmetic && !by_size && flops > 0) flops += rates.half * share;

  const double near = p.cache > 0 ? p.cache_bandwidth : p.memory_bandwidth;
  const double fitting = std::min(amount.bytes, p.cache * share);
  double moving = fitting / near + (amount.bytes - fitting) / p.memory_bandwidth;
  if (const auto own = p.bandwidths.find(op); own != p.bandwidths.end())
    moving = std::max(moving, amount.bytes / rate_at(own->second, amount.bytes / share));
  return setting.turns * (p.launch + std::max(flops / rate, moving) / share);
}

double batch_seconds(const Setting& setting, double bytes) {
  const Batch& batch = setting.machine.batch;
  const double reading = batch.bandwidth > 0 ? bytes / (batch.bandwidth * setting.processor_share) : 0;
  return setting.turns * (batch.seconds + reading);
}

double node_seconds(const Setting& setting, const Graph& graph, const Node& node, const ops::Form& form,
                    const std::vector<ops::Choice>& choices) {
  const std::vector<int>& in_place = ops::find(node.op).in_place;
  const Amount work = amount(graph, node, form, setting.mesh, choices);
  if (work.flops == 0 && !in_place.empty() && in_place[0] >= 0) return 0;
  return kernel_seconds(setting, node.op, work);
}

StepSeconds step_seconds(const Setting& setting, const Tensor& tensor, const tiling::Step& step) {
  if (step.kind == tiling::StepKind::slice || step.elements == 0)
    return {.network = 0, .local = copy_seconds(setting, bytes_of_block(tensor, step.to, setting.mesh))};
  return step.kind == tiling::StepKind::exchange ? exchange_seconds(setting, tensor, step)
                                                 : ring_seconds(setting, tensor, step);
}

StepSeconds move_seconds(const Setting& setting, const Tensor& tensor, const tiling::Tiling& from,
                         const tiling::Tiling& to) {
  StepSeconds sum;
  for (const tiling::Step& step : tiling::path(setting.mesh, {tensor.shape, tensor.units}, from, to)) {
    const StepSeconds seconds = step_seconds(setting, tensor, step);
    sum.network += seconds.network;
    sum.local += seconds.local;
  }
  return sum;
}

} // namespace soybean::machine
