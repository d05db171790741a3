#include "device/arena.hpp"

#include "base/error.hpp"

#include <sys/mman.h>

#include <utility>

namespace soybean::device {

namespace {

constexpr std::uintptr_t huge_page = std::uintptr_t{2} << 20;

/// Zero pages from the system, aligned to huge pages; nullptr when there are none.
void* map_pages(std::size_t bytes) {
  void* raw = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(raw);
  const std::uintptr_t misaligned = reinterpret_cast<std::uintptr_t>(first) % huge_page;
  const std::uintptr_t head = misaligned ? huge_page - misaligned : 0;
  if (head) munmap(first, head);
  if (head < huge_page) munmap(first + head + bytes, huge_page - head);
  madvise(first + head, bytes, MADV_HUGEPAGE); // a hint: its failure does not matter
  return first + head;
}

std::size_t whole_pages(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + huge_page - 1) / huge_page * huge_page;
}

} // namespace

Arena::Arena(std::int64_t bytes) : bytes_(bytes) {
  ensure(bytes >= 0, "arena of negative size");
  if (bytes == 0) return;
  data_ = map_pages(whole_pages(bytes));
  if (!data_)
    fail_running(
        "memory: no room for a rank's buffers, got {} bytes to allocate. use more ranks or a smaller data.batch",
        bytes);
}

Arena::~Arena() {
  release();
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Arena::release() noexcept {
  if (data_) munmap(data_, whole_pages(bytes_));
  data_ = nullptr;
  bytes_ = 0;
}

} // namespace soybean::device
