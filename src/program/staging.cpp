#include "program/staging.hpp"

#include "program/frees.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace soybean::program {
namespace {

/// Offset of the part and extents of both along a dim, outermost first as they lie in memory.
struct Along {
  std::int64_t block, offset, part;
};

std::vector<Along> in_memory_order(const Box& block, const Box& part, std::int64_t spatial) {
  std::vector<Along> dims;
  for (std::size_t d = 0; d < block.extents.size(); ++d)
    dims.push_back({block.extents[d], part.offsets[d] - block.offsets[d], part.extents[d]});
  if (spatial > 1 && dims.size() == 2) { // flattened: positions of whole channels
    Along& channels = dims[1];
    channels = {channels.block / spatial, channels.offset / spatial, channels.part / spatial};
    dims.insert(dims.begin() + 1, {spatial, 0, spatial});
  } else if (spatial > 1 && dims.size() > 2) {
    std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  }
  return dims;
}

class Sizes {
public:
  Sizes(const graph::Graph& graph, const Program& program, int rank)
      : graph_(graph), program_(program), rank_(rank), last_sends_(last_sends(program)) {}

  std::int64_t of(std::size_t instruction) const {
    const Instruction& i = program_.instructions[instruction];
    const graph::Tensor& tensor = graph_.tensors[program_.buffers[i.inputs[0]].tensor];
    switch (i.step.kind) {
    case tiling::StepKind::reduce_scatter:
      return in_order(i, tensor, last_sends_[instruction] != 0)
                 ? 0
                 : aligned(volume(block(i.step.from, tensor, rank_)), tensor);
    case tiling::StepKind::exchange: {
      const tiling::ExchangePieces pieces =
          tiling::exchange_pieces(program_.mesh, tensor.shape, i.step.from, i.step.to, rank_);
      return messages(pieces.send, block(i.step.from, tensor, rank_), tensor) +
             messages(pieces.receive, block(i.step.to, tensor, rank_), tensor);
    }
    case tiling::StepKind::all_reduce:
    case tiling::StepKind::slice:
      return 0;
    }
    return 0;
  }

private:
  Box block(const tiling::Tiling& tiling, const graph::Tensor& tensor, int rank) const {
    return tiling::block(tiling, tensor.shape, program_.mesh, rank);
  }

  static std::int64_t aligned(std::int64_t elements, const graph::Tensor& tensor) {
    return (elements * size_of(tensor.dtype) + alignment - 1) / alignment * alignment;
  }

  /// The members' parts follow each other in the block, which may be overwritten.
  bool in_order(const Instruction& i, const graph::Tensor& tensor, bool last_send) const {
    const Box from = block(i.step.from, tensor, rank_);
    std::int64_t total = 0;
    for (const int member : tiling::group(program_.mesh, rank_, i.step.cut, i.step.cuts)) {
      const Box part = block(i.step.to, tensor, member);
      if (volume(part) > 0 && run_in_block(from, part, tensor.spatial) != total) return false;
      total += volume(part);
    }
    return last_send;
  }

  /// One message for all pieces with a peer; a single one that is a run needs none.
  std::int64_t messages(const std::vector<tiling::Piece>& pieces, const Box& within,
                        const graph::Tensor& tensor) const {
    std::int64_t bytes = 0;
    for (std::size_t begin = 0, end = 0; begin < pieces.size(); begin = end) {
      std::int64_t elements = 0;
      for (end = begin; end < pieces.size() && pieces[end].peer == pieces[begin].peer; ++end)
        elements += volume(pieces[end].box);
      const bool direct = end - begin == 1 && run_in_block(within, pieces[begin].box, tensor.spatial);
      if (pieces[begin].peer != rank_ && !direct) bytes += aligned(elements, tensor);
    }
    return bytes;
  }

  const graph::Graph& graph_;
  const Program& program_;
  int rank_;
  std::vector<char> last_sends_; // per instruction
};

} // namespace

std::optional<std::int64_t> run_in_block(const Box& block, const Box& part, std::int64_t spatial) {
  if (volume(part) == 0) return 0;
  std::int64_t first = 0;
  bool several = false; // positions of the dims looked at
  for (const Along& dim : in_memory_order(block, part, spatial)) {
    if (several && dim.part != dim.block) return std::nullopt;
    first = first * dim.block + dim.offset;
    several = several || dim.part > 1;
  }
  return first;
}

Workspaces staging(const graph::Graph& graph, const Program& program, int rank) {
  const Sizes sizes(graph, program, rank);
  Workspaces bytes(program.instructions.size(), 0);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (program.instructions[i].kind == Kind::start) bytes[i] = sizes.of(i);
  return bytes;
}

} // namespace soybean::program
