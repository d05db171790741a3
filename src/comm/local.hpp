#pragma once
// The part of a collective that needs no other rank: what is left of a reduction in a group of one, and what a rank
// sends to itself. For back ends whose buffers may be an accelerator's.
#include "comm/comm.hpp"
#include "device/stream.hpp"

namespace soybean::comm {

/// Queues the copies of a reduction's only member, or of an exchange's messages to oneself.
void copy_local(const Collective& collective, int rank, device::Stream& stream);

} // namespace soybean::comm
