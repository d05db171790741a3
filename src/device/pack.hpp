#pragma once
// Copies boxes between a block in physical layout and packed memory: messages, feeding, checkpoints, slices. Blocks are
// in exec's memory.
#include "device/exec.hpp"
#include "device/tensor_view.hpp"

#include <cstdint>

namespace soybean::device {

/// Element order of the packed side.
enum class Order : std::uint8_t { physical, logical };

/// Copies the part `box` (global, inside view.box) of `view` to `packed` (exec's memory too), volume(box) elements of
/// view.dtype in a row:
/// physical: the order a block equal to `box` would be stored in; logical: row-major by global dims (files).
void pack(const Exec& exec, const TensorView& view, const Box& box, void* packed, Order order);
/// The inverse: writes `packed` into the part `box` of `view`.
void unpack(const Exec& exec, const void* packed, const TensorView& view, const Box& box, Order order);

/// The part `box` of `view` to the host's memory, row-major by global dims; waits for it.
void download(const Exec& exec, const TensorView& view, const Box& box, void* host);
/// The inverse, in order with exec's kernels; `host` may be reused at once.
void upload(const Exec& exec, const void* host, const TensorView& view, const Box& box);

/// Copies the part `box` (inside both) from one view to another of the same tensor.
void copy_box(const Exec& exec, const TensorView& from, const TensorView& to, const Box& box);

/// True if `box` is one contiguous run of view's memory in physical order, and where it begins (elements).
bool is_contiguous(const TensorView& view, const Box& box, std::int64_t* first);

} // namespace soybean::device
