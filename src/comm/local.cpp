#include "comm/local.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <numeric>

namespace soybean::comm {

void copy_local(const Collective& c, int rank, device::Stream& stream) {
  if (c.kind != Kind::exchange) {
    if (c.group.size() == 1 && c.recv != c.send) stream.copy(c.recv, c.send, c.counts.at(0) * size_of(c.dtype));
    return;
  }
  const auto is_self = [&](const Message& m) { return m.peer == rank; };
  const auto from = std::find_if(c.sends.begin(), c.sends.end(), is_self);
  const auto to = std::find_if(c.receives.begin(), c.receives.end(), is_self);
  if (from == c.sends.end() && to == c.receives.end()) return;
  if (from == c.sends.end() || to == c.receives.end() || from->count != to->count)
    ensure(false, "exchange: what a rank sends to itself is not what it receives");
  if (from->data != to->data) stream.copy(to->data, from->data, from->count * size_of(c.dtype));
}

} // namespace soybean::comm
