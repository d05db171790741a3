#pragma once
// Distributed tensors to and from one file through rank 0, slab by slab: no rank holds more than its block and one
// slab, and nothing needs a parallel file system. Used by checkpoints. All functions are collective.
#include "base/types.hpp"
#include "comm/comm.hpp"
#include "device/exec.hpp"
#include "device/tensor_view.hpp"
#include "io/hdf5.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::io {

constexpr std::int64_t slab_bytes = 16'000'000; ///< at most; kept in the file

/// Cuts a tensor into boxes of at most `limit` bytes (at least one element) that follow each other in row-major order:
/// whole rows of dim 0 where they fit, else rows of dim 1 within one of dim 0, and so on. Depends on nothing else.
std::vector<Box> slabs(const Shape& shape, std::int64_t element_bytes, std::int64_t limit = slab_bytes);

/// Writes dataset `name` of the view's global shape in logical order, and `checksums/<name>` with one checksum per
/// slab and the attribute `slab_bytes`, the limit they were cut by. `file`: open on rank 0, null elsewhere. `primary`:
/// this rank writes its block; the primary blocks of all ranks tile the tensor (else Bug). Throws Error(failed), the
/// same on every rank, when the file can not be written. Returns on rank 0 how many elements are not finite numbers.
std::int64_t write_tensor(comm::Comm& comm, const device::Exec& exec, const File* file, const std::string& name,
                          const device::TensorView& view, bool primary, std::int64_t limit = slab_bytes);

/// What a dataset may hold: the view's type, or fp32 for a view of fp64 and the other way round.
enum class Stored : std::uint8_t { alike, any_precision };

/// Fills the view's block, any box of the tensor, checking every slab; numbers of the other precision are rounded to
/// the view's. Throws Error, the same on every rank, naming file, dataset and slab when a checksum does not match, the
/// dataset has another shape or type, or a number is too large for the view's. The block's content is undefined then.
void read_tensor(comm::Comm& comm, const device::Exec& exec, const File* file, const std::string& name,
                 const device::TensorView& view, Stored stored = Stored::alike);

} // namespace soybean::io
