#pragma once
// How the hierarchical back end splits one collective into stages inside hosts and between hosts. No MPI, no waiting:
// called by HierarchicalComm at each start, tested alone.
#include "comm/comm.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace soybean::comm {

/// A copy on this rank before the first stage.
struct LocalCopy {
  void* to;
  const void* from;
  std::int64_t bytes;
};

/// What one rank does for one collective: `inside` on the fast links, `between` on the slow ones, `after` on the fast
/// ones again, each a collective of its own that begins when the one before is done. A stage in which this rank has
/// nothing to do is an all_reduce of nothing in a group of one, so that every rank starts all three.
///
/// Let a group have p members on H hosts, b the bytes of one term, and m = p/H members on each of its hosts:
/// all_reduce      inside: reduce-scatter to m chunks; between: all-reduce of a chunk among the members with equal
/// place
///                 in their hosts; after: exchange of the chunks.
///                 Received: H(m-1)·b + 2(H-1)·b + H(m-1)·b = 2(p-1)·b, of these from other hosts 2(H-1)·b.
/// reduce_scatter  inside: reduce-scatter to m classes, class k being what the members with place k are to get;
///                 between: reduce-scatter of a class among these members.
///                 Received: H(m-1)·b + (H-1)·b = (p-1)·b, of these from other hosts (H-1)·b.
/// Less is not possible: every host but one has to send its term of each sum and, all_reduce, to get the sum.
/// Groups within one host (H = 1) are one stage inside, groups with one member per host (m = 1) one stage between.
/// Where hosts have unequally many members the whole collective runs between: an all_reduce in order of hosts (a ring
/// crosses hosts H times: 2(p-1)/p·H·b on equal blocks), a reduce_scatter in the order of its group. exchange inside:
/// messages between ranks of one host; between: the others, at the same time. Sums are taken in an order that depends
/// on the group, the hosts and the counts alone.
class Stages {
public:
  /// Looks at where the members are: hosts[r] is the host of rank r. Both arguments must stay until `build`, which
  /// comes next. Memory of earlier collectives is reused.
  void place(const Collective& collective, int rank, std::span<const int> hosts);
  /// Bytes of memory, of the same kind as the collective's, that `build` needs: 0 but for a reduce_scatter whose parts
  /// do not lie class by class, which takes those of `send`.
  std::int64_t scratch_bytes() const;
  void build(void* scratch);

  static constexpr int count = 3;
  const Collective& stage(int s) const { return stages_[s]; }
  std::span<const LocalCopy> copies() const { return copies_; }
  bool at_once() const { return at_once_; } ///< no stage has to wait for another

private:
  enum class Way : std::uint8_t { inside, between, split, exchange };
  /// A member by its host's place among the group's hosts and its own place in that host.
  int member(int host, int place) const { return members_[host * per_host_ + place]; }
  bool in_classes() const; ///< whether the parts of the reduce_scatter lie class by class
  std::int64_t first_of(int member) const;
  void skip(int s);
  void whole(int s);
  void split_all_reduce();
  void split_reduce_scatter(void* scratch);
  void split_exchange();

  const Collective* collective_ = nullptr;
  int rank_ = 0;
  std::span<const int> hosts_;
  Way way_ = Way::inside;
  bool at_once_ = false;
  std::vector<int> group_hosts_, members_on_; ///< hosts of the group in order of appearance, members on each
  std::vector<int> members_;                  ///< places in the group, host by host
  int per_host_ = 0, my_host_ = 0, my_place_ = 0;
  std::array<Collective, count> stages_;
  std::vector<LocalCopy> copies_;
};

} // namespace soybean::comm
