#pragma once
// One redistribution step as one rank carries it out: which boxes are copied, packed, sent, received and unpacked.
// Prepared once by the executor, so that running it allocates nothing.
#include "comm/comm.hpp"
#include "device/tensor_view.hpp"
#include "tiling/redistribution.hpp"

#include <cstdint>
#include <vector>

namespace soybean::runtime {

/// A box of a block and where it lies packed (physical order).
struct Packed {
  Box box;
  void* data = nullptr;
};

struct Transfer {
  device::TensorView from, to;
  std::vector<Box> copies;     ///< from block to block on this rank, when the step starts
  std::vector<Packed> packs;   ///< before the messages leave
  std::vector<Packed> unpacks; ///< after they have arrived
  bool communicates = false;   ///< false: nothing moves between any ranks
  comm::Collective collective;
  std::int64_t staging_bytes = 0; ///< used at `staging`
};

struct TransferInput {
  const tiling::Mesh& mesh;
  int rank;
  const tiling::Step& step;
  device::TensorView from, to;      ///< their memory may be null while only staging_bytes is asked for
  bool from_dies = false;           ///< nobody reads `from` afterwards: its memory may serve as scratch
  const comm::Comm* comm = nullptr; ///< that will carry it out: its scratch is staged too
};

/// `staging`: memory for packed messages, staging_bytes of the same call with null. Where a message is one run of a
/// block's memory it is sent from or received into it directly.
Transfer prepare_transfer(const TransferInput& input, void* staging);

/// Everything on this rank before and after the collective.
void run_before(const device::Exec& exec, const Transfer& transfer);
void run_after(const device::Exec& exec, const Transfer& transfer);

} // namespace soybean::runtime
