#include "runtime/transfer.hpp"

#include "base/error.hpp"
#include "device/pack.hpp"

#include <cstddef>

namespace soybean::runtime {
namespace {

using device::TensorView;

constexpr std::int64_t message_alignment = 64;

/// base + bytes, also for a null base (sizing).
void* at(void* base, std::int64_t bytes) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): to a null pointer nothing may be added
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(bytes));
}

class Builder {
public:
  Builder(const TransferInput& input, void* staging) : input_(input), staging_(staging) {
    transfer_.from = input.from;
    transfer_.to = input.to;
    transfer_.communicates = input.step.elements > 0;
    transfer_.collective.dtype = input.from.dtype;
  }

  Transfer run() {
    switch (input_.step.kind) {
    case tiling::StepKind::slice:
      transfer_.copies.push_back(input_.to.box);
      break;
    case tiling::StepKind::all_reduce:
      all_reduce();
      break;
    case tiling::StepKind::reduce_scatter:
      reduce_scatter();
      break;
    case tiling::StepKind::exchange:
      exchange();
      break;
    }
    comm::Collective& c = transfer_.collective;
    if (transfer_.communicates && input_.comm != nullptr)
      if (const std::int64_t bytes = input_.comm->scratch_bytes(c); bytes > 0) c.scratch = stage_bytes(bytes);
    return std::move(transfer_);
  }

private:
  std::int64_t element() const { return size_of(input_.from.dtype); }

  void* stage(std::int64_t elements) { return stage_bytes(elements * element()); }

  void* stage_bytes(std::int64_t bytes) {
    void* memory = at(staging_, transfer_.staging_bytes);
    transfer_.staging_bytes += (bytes + message_alignment - 1) / message_alignment * message_alignment;
    return memory;
  }

  void all_reduce() {
    comm::Collective& c = transfer_.collective;
    c.kind = comm::Kind::all_reduce;
    c.group = tiling::group(input_.mesh, input_.rank, input_.step.cut);
    c.counts = {input_.from.size()};
    c.send = input_.from.data;
    c.recv = input_.to.data;
  }

  void reduce_scatter() {
    comm::Collective& c = transfer_.collective;
    c.kind = comm::Kind::reduce_scatter;
    c.group = tiling::group(input_.mesh, input_.rank, input_.step.cut, input_.step.cuts);
    c.recv = input_.to.data;
    std::vector<Box> boxes;
    bool in_order = input_.from_dies; // the members' parts follow each other in memory, which may be overwritten
    std::int64_t total = 0;
    for (int member : c.group) {
      boxes.push_back(tiling::block(input_.step.to, input_.from.global, input_.mesh, member));
      c.counts.push_back(volume(boxes.back()));
      std::int64_t first = 0;
      if (in_order && c.counts.back() > 0)
        in_order = device::is_contiguous(input_.from, boxes.back(), &first) && first == total;
      total += c.counts.back();
    }
    ensure(total == input_.from.size(), "reduce-scatter: the members' parts do not add up to the block");
    if (in_order) {
      c.send = input_.from.data;
      return;
    }
    c.send = stage(total);
    std::int64_t offset = 0;
    for (std::size_t m = 0; m < boxes.size(); ++m) {
      if (c.counts[m] > 0) transfer_.packs.push_back({boxes[m], at(c.send, offset * element())});
      offset += c.counts[m];
    }
  }

  /// One message for all boxes with one peer: straight from or into the block where that is one run of its memory,
  /// through staging otherwise.
  comm::Message message(const TensorView& view, const std::vector<tiling::Piece>& pieces, std::size_t begin,
                        std::size_t end, std::vector<Packed>& packed) {
    comm::Message m{.peer = pieces[begin].peer, .data = nullptr, .count = 0};
    for (std::size_t p = begin; p < end; ++p) m.count += volume(pieces[p].box);
    std::int64_t first = 0;
    if (end - begin == 1 && device::is_contiguous(view, pieces[begin].box, &first)) {
      m.data = at(view.data, first * element());
      return m;
    }
    m.data = stage(m.count);
    std::int64_t offset = 0;
    for (std::size_t p = begin; p < end; ++p) {
      packed.push_back({pieces[p].box, at(m.data, offset * element())});
      offset += volume(pieces[p].box);
    }
    return m;
  }

  void messages(const TensorView& view, const std::vector<tiling::Piece>& pieces, std::vector<comm::Message>& list,
                std::vector<Packed>& packed) {
    for (std::size_t begin = 0; begin < pieces.size();) {
      std::size_t end = begin + 1;
      while (end < pieces.size() && pieces[end].peer == pieces[begin].peer) ++end;
      if (pieces[begin].peer != input_.rank) list.push_back(message(view, pieces, begin, end, packed));
      begin = end;
    }
  }

  void exchange() {
    const tiling::ExchangePieces pieces =
        tiling::exchange_pieces(input_.mesh, input_.from.global, input_.step.from, input_.step.to, input_.rank);
    comm::Collective& c = transfer_.collective;
    c.kind = comm::Kind::exchange;
    for (const tiling::Piece& p : pieces.receive)
      if (p.peer == input_.rank) transfer_.copies.push_back(p.box);
    messages(input_.from, pieces.send, c.sends, transfer_.packs);
    messages(input_.to, pieces.receive, c.receives, transfer_.unpacks);
  }

  const TransferInput& input_;
  void* staging_;
  Transfer transfer_;
};

} // namespace

Transfer prepare_transfer(const TransferInput& input, void* staging) {
  return Builder(input, staging).run();
}

void run_before(const device::Exec& exec, const Transfer& transfer) {
  for (const Packed& p : transfer.packs) device::pack(exec, transfer.from, p.box, p.data, device::Order::physical);
  for (const Box& box : transfer.copies) device::copy_box(exec, transfer.from, transfer.to, box);
}

void run_after(const device::Exec& exec, const Transfer& transfer) {
  for (const Packed& p : transfer.unpacks) device::unpack(exec, p.data, transfer.to, p.box, device::Order::physical);
}

} // namespace soybean::runtime
