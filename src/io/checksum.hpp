#pragma once
// A fast 64-bit checksum that finds damaged bytes in checkpoints: four interleaved lanes of multiply-rotate mixing over
// 8-byte words, folded together with the length. Not cryptographic.
#include <cstddef>
#include <cstdint>
#include <span>

namespace soybean::io {

std::uint64_t checksum(std::span<const std::byte> data);

} // namespace soybean::io
