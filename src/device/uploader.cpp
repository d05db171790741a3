#include "device/uploader.hpp"

#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/pack.hpp"
#include "device/stream.hpp"

#include <array>
#include <cstring>

namespace soybean::device {

struct Uploader::Slot {
  Slot(const Exec& exec, std::int64_t bytes)
      : host(exec.device(), bytes), staged(exec, bytes), unpacked(exec.device()), copied(exec.device()) {}
  HostBuffer host;
  Arena staged;
  Event unpacked, copied;
};

struct Uploader::Target {
  Target(const Exec& exec, std::int64_t bytes) : slots{Slot(exec, bytes), Slot(exec, bytes)} {}
  std::array<Slot, 2> slots;
  std::size_t next = 0;
};

Uploader::Uploader(const Exec& exec) : exec_(exec) {
  if (exec.on_device()) stream_ = std::make_unique<Stream>(exec.device());
}

// The memory must not go while copies are under way.
Uploader::~Uploader() {
  try {
    if (stream_) stream_->synchronise();
    if (stream_) exec_.fence();
  } catch (const std::exception&) { // an accelerator that failed has no copies under way any more
    return;
  }
}

std::int64_t Uploader::reserved_bytes(const Exec& exec, const TensorView& view) {
  return exec.on_device() ? 2 * view.size() * size_of(view.dtype) : 0;
}

void Uploader::reserve(const TensorView& view) {
  if (!exec_.on_device() || view.size() == 0) return;
  targets_[view.data] = std::make_unique<Target>(exec_, view.size() * size_of(view.dtype));
}

void Uploader::write(const TensorView& view, const void* host) {
  if (view.size() == 0) return;
  if (!exec_.on_device()) return upload(exec_, host, view, view.box);
  const std::int64_t bytes = view.size() * size_of(view.dtype);
  const auto found = targets_.find(view.data);
  if (found == targets_.end() || found->second->slots[0].host.bytes() != bytes)
    ensure(false, "uploader: a block that was not reserved");
  Target& target = *found->second;
  Slot& slot = target.slots[target.next];
  target.next = 1 - target.next;
  if (!slot.unpacked.done()) slot.unpacked.synchronise();
  std::memcpy(slot.host.data(), host, static_cast<std::size_t>(bytes));
  stream_->copy(slot.staged.data(), slot.host.data(), bytes);
  slot.copied.record(*stream_);
  exec_.stream().wait(slot.copied);
  unpack(exec_, slot.staged.data(), view, view.box, Order::logical);
  slot.unpacked.record(exec_.stream());
}

} // namespace soybean::device
