#include "io/gather.hpp"

#include "base/error.hpp"
#include "device/pack.hpp"
#include "io/checksum.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

namespace soybean::io {

namespace {

using device::Order;
using device::TensorView;

constexpr int slab_tag = 17;

struct RankBlock {
  Box box;
  bool primary;
};

/// Every rank's block of the tensor, on every rank.
std::vector<RankBlock> gather_blocks(comm::Comm& comm, const Box& box, bool primary) {
  std::vector<std::int64_t> mine{primary ? 1 : 0};
  mine.insert(mine.end(), box.offsets.begin(), box.offsets.end());
  mine.insert(mine.end(), box.extents.begin(), box.extents.end());
  const std::vector<std::byte> all = comm.gather_all(std::as_bytes(std::span(mine)));
  const std::size_t dims = box.offsets.size();
  std::vector<std::int64_t> numbers(all.size() / sizeof(std::int64_t));
  std::memcpy(numbers.data(), all.data(), all.size());
  std::vector<RankBlock> blocks;
  for (auto at = numbers.begin(); at != numbers.end(); at += static_cast<std::ptrdiff_t>(1 + 2 * dims)) {
    const auto offsets = at + 1, extents = offsets + static_cast<std::ptrdiff_t>(dims);
    blocks.push_back({{{offsets, extents}, {extents, extents + static_cast<std::ptrdiff_t>(dims)}}, *at != 0});
  }
  return blocks;
}

/// Gives rank 0's failure, if it has one, to every rank.
void share_failure(comm::Comm& comm, const std::optional<Error>& failure) {
  std::int64_t code = failure ? static_cast<std::int64_t>(failure->code()) : -1;
  comm.broadcast(&code, sizeof(code), 0);
  if (code < 0) return;
  Error error(comm::broadcast_text(comm, failure ? failure->what() : ""), static_cast<ExitCode>(code));
  error.mark_on_all_ranks();
  throw error;
}

/// Runs f on rank 0 unless it has failed before; keeps its Error.
template<class F>
void attempt(std::optional<Error>& failure, F&& f) {
  if (failure) return;
  try {
    f();
  } catch (const Error& error) {
    failure = error;
  }
}

TensorView slab_view(std::vector<std::byte>& memory, const TensorView& tensor, const Box& slab) {
  memory.resize(static_cast<std::size_t>(volume(slab) * size_of(tensor.dtype)));
  return {memory.data(), tensor.dtype, slab, tensor.global, 1};
}

std::int64_t bytes_of(const Box& box, DType type) {
  return volume(box) * size_of(type);
}

void cut(const Shape& shape, std::size_t dim, const Box& within, std::int64_t element_bytes, std::int64_t limit,
         std::vector<Box>& result) {
  std::int64_t row = element_bytes;
  for (std::size_t d = dim + 1; d < shape.size(); ++d) row *= shape[d];
  if (dim == shape.size()) {
    result.push_back(within);
    return;
  }
  const bool fits = row <= limit || dim + 1 == shape.size();
  const std::int64_t rows = fits ? std::max<std::int64_t>(1, limit / row) : 1;
  for (std::int64_t first = 0; first < shape[dim]; first += rows) {
    Box part = within;
    part.offsets[dim] = first;
    part.extents[dim] = std::min(rows, shape[dim] - first);
    if (fits)
      result.push_back(part);
    else
      cut(shape, dim + 1, part, element_bytes, limit, result);
  }
}

/// Throws Error unless the dataset is what the view is part of; returns the type of its elements.
DType check_dataset(const File& file, const std::string& name, const TensorView& view, Stored stored) {
  const DatasetInfo info = dataset_info(file, name);
  if (info.shape != view.global)
    fail("{}: {}, got shape {} expected {}", file.path, name, to_string(info.shape), to_string(view.global));
  const ElementClass expected = view.dtype == DType::i32 ? ElementClass::integer : ElementClass::real;
  const bool rounds = stored == Stored::any_precision && view.dtype != DType::i32;
  if (rounds && info.element == expected && (info.element_bytes == 4 || info.element_bytes == 8))
    return info.element_bytes == 4 ? DType::f32 : DType::f64;
  if (info.element != expected || info.element_bytes != size_of(view.dtype))
    fail("{}: {}, got {} elements of {} bytes expected {}", file.path, name,
         info.element == ElementClass::real ? "real" : "other", info.element_bytes, to_string(view.dtype));
  return view.dtype;
}

template<class From, class To>
std::vector<std::byte> rounded(const std::vector<std::byte>& memory, const std::string& what) {
  const std::span<const From> from(reinterpret_cast<const From*>(memory.data()), memory.size() / sizeof(From));
  std::vector<std::byte> result(from.size() * sizeof(To));
  auto* to = reinterpret_cast<To*>(result.data());
  for (From value : from) {
    *to = static_cast<To>(value);
    if (std::isfinite(value) && !std::isfinite(*to))
      fail("{}, got {} expected numbers within the range of the run's precision. set train.precision to the file's",
           what, value);
    ++to;
  }
  return result;
}

/// Elements of one precision as those of the other.
void convert(std::vector<std::byte>& memory, DType from, DType to, const std::string& what) {
  if (from == to) return;
  memory = from == DType::f32 ? rounded<float, double>(memory, what) : rounded<double, float>(memory, what);
}

template<class T>
std::int64_t count_not_finite(const std::vector<std::byte>& memory) {
  const auto* values = reinterpret_cast<const T*>(memory.data());
  return std::count_if(values, values + memory.size() / sizeof(T), [](T value) { return !std::isfinite(value); });
}

std::int64_t count_not_finite(DType dtype, const std::vector<std::byte>& memory) {
  switch (dtype) {
  case DType::f32:
    return count_not_finite<float>(memory);
  case DType::f64:
    return count_not_finite<double>(memory);
  case DType::i32:
    break;
  }
  return 0;
}

} // namespace

std::vector<Box> slabs(const Shape& shape, std::int64_t element_bytes, std::int64_t limit) {
  std::vector<Box> result;
  if (volume(shape) > 0) cut(shape, 0, whole(shape), element_bytes, limit, result);
  return result;
}

std::int64_t write_tensor(comm::Comm& comm, const device::Exec& exec, const File* file, const std::string& name,
                          const TensorView& view, bool primary, std::int64_t limit) {
  const bool root = comm.rank() == 0;
  const device::Exec host(exec.threads());
  const std::vector<RankBlock> blocks = gather_blocks(comm, view.box, primary);
  std::int64_t covered = 0;
  for (const RankBlock& block : blocks) covered += block.primary ? volume(block.box) : 0;
  ensure(covered == volume(view.global),
         fmt::format("{}: primary blocks hold {} of {} elements", name, covered, volume(view.global)));
  std::optional<Error> failure;
  std::vector<std::uint64_t> sums;
  std::vector<std::byte> memory, packed;
  std::int64_t not_finite = 0;
  if (root) attempt(failure, [&] { create_dataset(*file, name, view.global, view.dtype); });
  for (const Box& slab : slabs(view.global, size_of(view.dtype), limit)) {
    const Box mine = intersect(view.box, slab);
    if (!root) {
      if (!primary || empty(mine)) continue;
      packed.resize(static_cast<std::size_t>(bytes_of(mine, view.dtype)));
      device::download(exec, view, mine, packed.data());
      comm.send(packed.data(), static_cast<std::int64_t>(packed.size()), 0, slab_tag);
      continue;
    }
    const TensorView target = slab_view(memory, view, slab);
    for (int r = 0; r < comm.size(); ++r) {
      const Box part = intersect(blocks[r].box, slab);
      if (!blocks[r].primary || empty(part)) continue;
      packed.resize(static_cast<std::size_t>(bytes_of(part, view.dtype)));
      if (r == 0)
        device::download(exec, view, part, packed.data());
      else
        comm.receive(packed.data(), static_cast<std::int64_t>(packed.size()), r, slab_tag);
      device::unpack(host, packed.data(), target, part, Order::logical);
    }
    sums.push_back(checksum(memory));
    not_finite += count_not_finite(view.dtype, memory);
    attempt(failure, [&] { write_box(*file, name, slab, view.dtype, memory.data()); });
  }
  if (root)
    attempt(failure, [&] {
      write_u64(*file, "checksums/" + name, sums);
      write_attribute_of(*file, "checksums/" + name, "slab_bytes", limit);
    });
  share_failure(comm, failure);
  return not_finite;
}

void read_tensor(comm::Comm& comm, const device::Exec& exec, const File* file, const std::string& name,
                 const TensorView& view, Stored stored) {
  const bool root = comm.rank() == 0;
  const device::Exec host(exec.threads());
  const std::vector<RankBlock> blocks = gather_blocks(comm, view.box, true);
  DType type = view.dtype; // of the file's elements, whose slabs these are
  std::optional<Error> failure;
  std::vector<std::uint64_t> sums;
  std::int64_t limit = 0;
  if (root)
    attempt(failure, [&] {
      type = check_dataset(*file, name, view, stored);
      limit = read_integer_attribute_of(*file, "checksums/" + name, "slab_bytes");
      if (limit < 1) fail("{}: checksums/{}, got slabs of {} bytes expected at least one", file->path, name, limit);
      sums = read_u64(*file, "checksums/" + name);
      const std::size_t expected = slabs(view.global, size_of(type), limit).size();
      if (sums.size() != expected)
        fail("{}: checksums/{}, got {} checksums expected {}", file->path, name, sums.size(), expected);
    });
  share_failure(comm, failure);
  comm.broadcast(&limit, sizeof(limit), 0);
  comm.broadcast(&type, sizeof(type), 0);
  const std::vector<Box> parts = slabs(view.global, size_of(type), limit);
  std::vector<std::byte> memory, packed;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const Box mine = intersect(view.box, parts[s]);
    if (!root) {
      if (empty(mine)) continue;
      packed.resize(static_cast<std::size_t>(bytes_of(mine, view.dtype)));
      comm.receive(packed.data(), static_cast<std::int64_t>(packed.size()), 0, slab_tag);
      device::upload(exec, packed.data(), view, mine);
      continue;
    }
    attempt(failure, [&] {
      memory.resize(static_cast<std::size_t>(bytes_of(parts[s], type)));
      read_box(*file, name, parts[s], type, memory.data());
      if (checksum(memory) != sums[s])
        fail("{}: {}, elements {}, got a checksum that does not match expected the one written with them. the file is "
             "damaged",
             file->path, name, to_string(parts[s]));
      convert(memory, type, view.dtype, fmt::format("{}: {}, elements {}", file->path, name, to_string(parts[s])));
    });
    const TensorView source = slab_view(memory, view, parts[s]);
    for (int r = 0; r < comm.size(); ++r) {
      const Box part = intersect(blocks[r].box, parts[s]);
      if (empty(part)) continue;
      packed.resize(static_cast<std::size_t>(bytes_of(part, view.dtype)));
      device::pack(host, source, part, packed.data(), Order::logical);
      if (r == 0)
        device::upload(exec, packed.data(), view, part);
      else
        comm.send(packed.data(), static_cast<std::int64_t>(packed.size()), r, slab_tag);
    }
  }
  share_failure(comm, failure);
}

} // namespace soybean::io
