#pragma once
// What a machine is: rates of a rank's processor and the levels of links between ranks, as a machine file gives them
// (inputs/machines/README.md). Hides the file's format. Read by the programs; priced with by src/machine/time.hpp and
// src/simulate; written by the calibration.
#include "base/types.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::machine {

enum class Precision : std::uint8_t { fp64, fp32, tf32 };
constexpr std::size_t precisions = 3;
std::string_view to_string(Precision precision);
/// Of a graph's precision; `tf32`: factors of products are rounded.
Precision precision_of(DType dtype, bool tf32);

/// What kind of arithmetic an operator is, by its name.
enum class Work : std::uint8_t { products, convolutions, arithmetic };
Work work_of(std::string_view op);

/// A rate by the size of the work: points by ascending size, straight between them in logarithms, constant beyond. At
/// least one point; rates grow no faster than sizes, so that more work never takes less time.
struct Point {
  double size = 0, rate = 0; ///< flops and flop/s, or bytes and bytes/s
  bool operator==(const Point&) const = default;
};
using Curve = std::vector<Point>;
double rate_at(const Curve& curve, double size);
using ByOperator = std::map<std::string, Curve, std::less<>>;

/// Floating-point operations per second in one precision, those of the operators' definitions.
struct Rates {
  double peak = 0; ///< of the data sheet; only convolutions, by fast algorithms, are above it. 0: no rates are given
  double products = 0, convolutions = 0, arithmetic = 0; ///< as kernels reach them
  /// Operations of a product or convolution that runs at half its rate (Hockney's n½); not of those with several
  /// points.
  double half = 0;
  ByOperator operators; ///< of operators with rates of their own, by flops
  bool operator==(const Rates&) const = default;
};

/// Of one rank, or, `shared`, of a host whose ranks have equal parts of it.
struct Processor {
  bool shared = false;
  std::int64_t cores = 0; ///< of a host; more ranks than that take turns. 0: as many as there are ranks
  double turn = 0;   ///< seconds until a core is back that was given to one other rank while a message is waited for
  double launch = 0; ///< seconds between the starts of two kernels that do nothing
  double memory_bandwidth = 0; ///< bytes/s, read and written together, as element-wise kernels reach it
  double cache = 0;            ///< bytes; operands of a kernel that fit in it move at cache_bandwidth. 0: none
  double cache_bandwidth = 0;
  ByOperator bandwidths; ///< bytes/s of operators whose kernels reach no more than that, by bytes
  std::array<Rates, precisions> rates;
  bool operator==(const Processor&) const = default;
};

/// Who has a link's bandwidth for himself.
enum class Per : std::uint8_t {
  rank,  ///< each rank
  group, ///< each of the groups it joins, such as the hosts of a network
  all,   ///< all it joins together: a bus
};
std::string_view to_string(Per per);

/// A level of links joins groups of the level below (the innermost one: single ranks) to larger ones.
struct Link {
  std::string name;
  std::int64_t ranks = 0; ///< of one group it makes; 0: any number (the outermost level alone)
  double latency = 0;     ///< seconds until an empty message is there
  double bandwidth = 0;   ///< bytes/s in each direction, as collectives reach it
  Per per = Per::rank;
  bool operator==(const Link&) const = default;
};

/// What a step takes beside its program: the rank's part of the batch is read by a thread that takes time from its
/// kernels, then given to the program.
struct Batch {
  double seconds = 0;   ///< of however little
  double bandwidth = 0; ///< bytes/s; 0: no time at all. Where the processor is shared, of all ranks of a host
  bool operator==(const Batch&) const = default;
};

struct Machine {
  std::string name;
  std::string file;                ///< what errors call it
  std::int64_t ranks_per_host = 0; ///< 0: all ranks run on one host
  std::int64_t memory = 0;         ///< bytes a rank may use
  double overlap = 0; ///< how much of a transfer is done per second of computing beside it, from 0 to 1 (all)
  Processor processor;
  Batch batch;
  std::vector<Link> links; ///< innermost first, at least one

  const Rates& rates(Precision precision) const { return processor.rates[static_cast<std::size_t>(precision)]; }
  Rates& rates(Precision precision) { return processor.rates[static_cast<std::size_t>(precision)]; }
};

/// Reads a machine file's text; `file` names it. Throws one Error: `file:line: key, got … expected …. hint`.
Machine parse_machine(const std::string& text, const std::string& file);

/// The text of a machine file that reads back to the same machine; `notes`: lines of comment at its top.
std::string machine_text(const Machine& machine, const std::vector<std::string>& notes = {});

/// The path of a machine file: `name` itself where it has a '/' or ends in .toml, else `folder/name.toml` of the first
/// of these folders that has it. Throws Error (`where: …`), with the names there are.
std::string find_machine(const std::string& name, const std::vector<std::string>& folders, std::string_view where);

/// How many ranks each host gets when `ranks` are placed host by host. Throws Error for more than the machine has.
std::vector<int> ranks_on_hosts(const Machine& machine, int ranks);

} // namespace soybean::machine
