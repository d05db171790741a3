#include "device/uploader.hpp"

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
  std::array<std::unique_ptr<Slot>, 2> slots;
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

void Uploader::write(const TensorView& view, const void* host) {
  if (view.size() == 0) return;
  if (!exec_.on_device()) return upload(exec_, host, view, view.box);
  const std::int64_t bytes = view.size() * size_of(view.dtype);
  std::unique_ptr<Target>& target = targets_[view.data];
  if (!target) target = std::make_unique<Target>();
  std::unique_ptr<Slot>& slot = target->slots[target->next];
  target->next = 1 - target->next;
  if (slot && !slot->unpacked.done()) slot->unpacked.synchronise();
  if (!slot || slot->host.bytes() < bytes) slot = std::make_unique<Slot>(exec_, bytes);
  std::memcpy(slot->host.data(), host, static_cast<std::size_t>(bytes));
  stream_->copy(slot->staged.data(), slot->host.data(), bytes);
  slot->copied.record(*stream_);
  exec_.stream().wait(slot->copied);
  unpack(exec_, slot->staged.data(), view, view.box, Order::logical);
  slot->unpacked.record(exec_.stream());
}

} // namespace soybean::device
