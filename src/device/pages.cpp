#include "device/pages.hpp"

#include <sys/mman.h>

#include <cstddef>

namespace soybean::device {

namespace {

constexpr std::uintptr_t huge_page = std::uintptr_t{2} << 20;

std::size_t whole_pages(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + huge_page - 1) / huge_page * huge_page;
}

} // namespace

void* map_pages(std::int64_t size) {
  const std::size_t bytes = whole_pages(size);
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

void unmap_pages(void* data, std::int64_t bytes) noexcept {
  munmap(data, whole_pages(bytes));
}

} // namespace soybean::device
