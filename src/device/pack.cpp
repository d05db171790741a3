#include "device/pack.hpp"

#include "base/error.hpp"
#include "device/memory.hpp"
#include "device/rows.hpp"
#include "device/staging.hpp"
#include "device/stream.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

namespace soybean::device {

namespace {

constexpr int max_axes = 8;

/// A loop of a copy: steps of `from` and `to` in elements.
struct Axis {
  std::int64_t extent = 1, from = 0, to = 0;
};

/// A strided N-d copy, outermost axis first.
struct Copy {
  std::array<Axis, max_axes> axes;
  int rank = 0;
  std::int64_t from = 0, to = 0; ///< first elements

  void add(Axis axis) {
    ensure(rank < max_axes, "tensor of too many dims");
    axes[rank++] = axis;
  }
  std::int64_t volume() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= axes[i].extent;
    return n;
  }
};

/// Up to three of something, without allocating: what a flattened dim cut inside channels falls into.
template<class T>
struct Few {
  std::array<T, 3> items{};
  int count = 0;
  void add(const T& item) { items[count++] = item; }
  const T* begin() const { return items.data(); }
  const T* end() const { return items.data() + count; }
};

/// A box in canonical dims: those of the tensor, but a flattened dim 1 (rank 2, spatial S > 1) taken apart into
/// channels and positions.
struct Canonical {
  std::array<std::int64_t, max_axes> offsets{}, extents{};
  int rank = 0;
};

bool is_flattened(const TensorView& view) {
  return view.spatial > 1 && view.box.extents.size() == 2;
}

/// `box` of a tensor laid out like `view`; a flattened dim must hold whole channels.
Canonical canonical(const TensorView& view, const Box& box) {
  Canonical c;
  c.rank = static_cast<int>(box.extents.size());
  ensure(c.rank < max_axes, "tensor of too many dims");
  std::copy(box.offsets.begin(), box.offsets.end(), c.offsets.begin());
  std::copy(box.extents.begin(), box.extents.end(), c.extents.begin());
  if (is_flattened(view)) {
    const std::int64_t s = view.spatial;
    ensure(box.offsets[1] % s == 0 && box.extents[1] % s == 0, "a block of a flattened tensor holds whole channels");
    c.rank = 3;
    c.offsets[1] /= s, c.extents[1] /= s;
    c.offsets[2] = 0, c.extents[2] = s;
  }
  return c;
}

using Strides = std::array<std::int64_t, max_axes>;

Strides logical_strides(const Canonical& block) {
  Strides strides{};
  std::int64_t step = 1;
  for (int d = block.rank - 1; d >= 0; step *= block.extents[d--]) strides[d] = step;
  return strides;
}

/// Strides of a block in physical order: dim 1 innermost where there are spatial positions (of a single one, as a block
/// of an image may have, both orders are the same).
Strides physical_strides(const Canonical& block, bool channels_last) {
  if (!channels_last || block.rank < 3) return logical_strides(block);
  Strides strides{};
  strides[1] = 1;
  std::int64_t step = block.extents[1];
  for (int d = block.rank - 1; d >= 2; step *= block.extents[d--]) strides[d] = step;
  strides[0] = step;
  return strides;
}

/// Where `part` of `block` begins.
std::int64_t position(const Canonical& block, const Strides& strides, const Canonical& part) {
  std::int64_t first = 0;
  for (int d = 0; d < block.rank; ++d) first += (part.offsets[d] - block.offsets[d]) * strides[d];
  return first;
}

/// Puts the axes in the order of `to`, drops those of extent 1 and merges neighbours that run on in both.
Copy simplified(const Copy& copy) {
  Copy sorted = copy;
  std::stable_sort(sorted.axes.begin(), sorted.axes.begin() + sorted.rank,
                   [](const Axis& a, const Axis& b) { return a.to > b.to; });
  Copy out;
  out.from = copy.from, out.to = copy.to;
  for (int i = 0; i < sorted.rank; ++i) {
    const Axis& axis = sorted.axes[i];
    if (axis.extent == 1) continue;
    if (out.rank > 0) {
      Axis& outer = out.axes[out.rank - 1];
      if (outer.to == axis.extent * axis.to && outer.from == axis.extent * axis.from) {
        outer = {outer.extent * axis.extent, axis.from, axis.to};
        continue;
      }
    }
    out.add(axis);
  }
  return out;
}

/// Copies between two blocks of one tensor. `part` lies in both.
Copy between(const Canonical& a, const Strides& a_strides, const Canonical& b, const Strides& b_strides,
             const Canonical& part) {
  Copy copy;
  copy.from = position(a, a_strides, part);
  copy.to = position(b, b_strides, part);
  for (int d = 0; d < part.rank; ++d) copy.add({part.extents[d], a_strides[d], b_strides[d]});
  return copy;
}

/// The cuboids of whole rows, channels and positions that make up `box`: several only where a flattened dim is cut
/// inside a channel.
Few<Canonical> cuboids(const TensorView& view, const Box& box) {
  Few<Canonical> parts;
  if (!is_flattened(view)) {
    parts.add(canonical(view, box));
    return parts;
  }
  const std::int64_t s = view.spatial, end = box.offsets[1] + box.extents[1];
  for (std::int64_t k = box.offsets[1]; k < end;) {
    const std::int64_t channel = k / s, position = k % s;
    const bool whole = position == 0 && end - k >= s;
    const std::int64_t channels = whole ? (end - k) / s : 1;
    const std::int64_t positions = whole ? s : std::min(s - position, end - k);
    Canonical part;
    part.rank = 3;
    part.offsets = {box.offsets[0], channel, position};
    part.extents = {box.extents[0], channels, positions};
    parts.add(part);
    k += channels * positions;
  }
  return parts;
}

/// Copies from view to packed memory, in packed order.
Few<Copy> pack_copies(const TensorView& view, const Box& box, Order order) {
  if (!contains(view.box, box))
    ensure(false, "a box outside the block: " + to_string(box) + " of " + to_string(view.box));
  Few<Copy> copies;
  if (empty(box)) return copies;
  const Canonical block = canonical(view, view.box);
  const Strides strides = physical_strides(block, view.spatial > 1);
  if (order == Order::physical || !is_flattened(view)) {
    const Canonical part = canonical(view, box);
    const Strides packed = order == Order::physical ? physical_strides(part, view.spatial > 1) : logical_strides(part);
    copies.add(simplified(between(block, strides, part, packed, part)));
    return copies;
  }
  for (const Canonical& part : cuboids(view, box)) {
    Copy copy;
    copy.from = position(block, strides, part);
    copy.to = part.offsets[1] * view.spatial + part.offsets[2] - box.offsets[1];
    copy.add({part.extents[0], strides[0], box.extents[1]});
    copy.add({part.extents[1], strides[1], view.spatial});
    copy.add({part.extents[2], strides[2], 1});
    copies.add(simplified(copy));
  }
  return copies;
}

Copy reversed(Copy copy) {
  std::swap(copy.from, copy.to);
  for (int i = 0; i < copy.rank; ++i) std::swap(copy.axes[i].from, copy.axes[i].to);
  return simplified(copy);
}

/// First elements of iteration `index` of the outer axes of a copy.
std::pair<std::int64_t, std::int64_t> start_of(const Copy& copy, int outer, std::int64_t index) {
  std::int64_t from = copy.from, to = copy.to;
  for (int d = outer - 1; d >= 0; --d) {
    const std::int64_t i = index % copy.axes[d].extent;
    index /= copy.axes[d].extent;
    from += i * copy.axes[d].from, to += i * copy.axes[d].to;
  }
  return {from, to};
}

std::int64_t outer_count(const Copy& copy, int outer) {
  std::int64_t n = 1;
  for (int d = 0; d < outer; ++d) n *= copy.axes[d].extent;
  return n;
}

constexpr std::int64_t parallel_bytes = 256 << 10;

/// The innermost axis runs on in both: runs of memcpy, long ones cut for the threads.
template<class T>
void copy_runs(int threads, const Copy& copy, const T* from, T* to) {
  const int outer = std::max(copy.rank - 1, 0);
  const std::int64_t run = copy.rank ? copy.axes[outer].extent : 1;
  const std::int64_t piece = std::max<std::int64_t>(1, std::min(run, std::int64_t{32768}));
  const std::int64_t pieces = (run + piece - 1) / piece, n = outer_count(copy, outer);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (std::int64_t job = 0; job < n * pieces; ++job) {
    const auto [f, t] = start_of(copy, outer, job / pieces);
    const std::int64_t begin = job % pieces * piece, end = std::min(run, begin + piece);
    std::memcpy(to + t + begin, from + f + begin, static_cast<std::size_t>((end - begin) * std::int64_t{sizeof(T)}));
  }
}

/// The axes innermost in `from` and in `to` differ: a transposition in square tiles that stay in cache.
template<class T>
void copy_transposed(int threads, Copy copy, const T* from, T* to) {
  // Bring the axis with the shortest step of `from` next to the innermost one.
  const int last = copy.rank - 1;
  int best = 0;
  for (int d = 1; d < last; ++d)
    if (copy.axes[d].from < copy.axes[best].from) best = d;
  if (last > 0) std::rotate(copy.axes.begin() + best, copy.axes.begin() + best + 1, copy.axes.begin() + last);
  constexpr std::int64_t tile = 32;
  const int outer = std::max(last - 1, 0);
  const Axis slow = last > 0 ? copy.axes[last - 1] : Axis{}, fast = copy.axes[last];
  const std::int64_t slabs = (slow.extent + tile - 1) / tile, n = outer_count(copy, outer);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (std::int64_t job = 0; job < n * slabs; ++job) {
    const auto [f, t] = start_of(copy, outer, job / slabs);
    const std::int64_t i_begin = job % slabs * tile, i_end = std::min(slow.extent, i_begin + tile);
    for (std::int64_t j_begin = 0; j_begin < fast.extent; j_begin += tile) {
      const std::int64_t j_end = std::min(fast.extent, j_begin + tile);
      for (std::int64_t i = i_begin; i < i_end; ++i) {
        const T* source = from + f + i * slow.from;
        T* target = to + t + i * slow.to;
        for (std::int64_t j = j_begin; j < j_end; ++j) target[j * fast.to] = source[j * fast.from];
      }
    }
  }
}

/// One element of a copy, on an accelerator. Index: unsigned of 32 bits where that is enough, since those are divided
/// much faster there.
template<class T, class Index>
struct CopyElement {
  Axis axes[max_axes];
  int rank;
  const T* from;
  T* to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    std::int64_t f = 0, t = 0;
    Index rest = static_cast<Index>(i);
    for (int d = rank - 1; d >= 0; --d) {
      const Index extent = static_cast<Index>(axes[d].extent), outer = rest / extent;
      const std::int64_t k = static_cast<std::int64_t>(rest - outer * extent);
      rest = outer;
      f += k * axes[d].from, t += k * axes[d].to;
    }
    to[t] = from[f];
  }
};

template<class Index, class T>
void copy_elements_by(const Exec& exec, const Copy& copy, const T* from, T* to) {
  CopyElement<T, Index> element{.axes = {}, .rank = copy.rank, .from = from + copy.from, .to = to + copy.to};
  std::copy(copy.axes.begin(), copy.axes.begin() + copy.rank, element.axes);
  flat_for(exec, copy.volume(), "soybean::copy", element);
}

template<class T>
void copy_elements(const Exec& exec, const Copy& copy, const T* from, T* to) {
  if (copy.volume() <= std::numeric_limits<std::uint32_t>::max())
    copy_elements_by<std::uint32_t>(exec, copy, from, to);
  else
    copy_elements_by<std::int64_t>(exec, copy, from, to);
}

template<class T>
void run_typed(const Exec& exec, int threads, const Copy& copy, const void* from, void* to) {
  const auto* source = static_cast<const T*>(from);
  auto* target = static_cast<T*>(to);
  if (exec.on_device()) return copy_elements(exec, copy, source, target);
  if (copy.rank == 0 || (copy.axes[copy.rank - 1].from == 1 && copy.axes[copy.rank - 1].to == 1))
    copy_runs(threads, copy, source, target);
  else
    copy_transposed(threads, copy, source, target);
}

void run(const Exec& exec, DType dtype, const Copy& copy, const void* from, void* to) {
  const int threads = copy.volume() * size_of(dtype) < parallel_bytes ? 1 : exec.threads();
  switch (dtype) {
  case DType::f32:
    return run_typed<float>(exec, threads, copy, from, to);
  case DType::f64:
    return run_typed<double>(exec, threads, copy, from, to);
  case DType::i32:
    return run_typed<std::int32_t>(exec, threads, copy, from, to);
  }
}

} // namespace

void pack(const Exec& exec, const TensorView& view, const Box& box, void* packed, Order order) {
  for (const Copy& copy : pack_copies(view, box, order)) run(exec, view.dtype, copy, view.data, packed);
}

void unpack(const Exec& exec, const void* packed, const TensorView& view, const Box& box, Order order) {
  for (const Copy& copy : pack_copies(view, box, order)) run(exec, view.dtype, reversed(copy), packed, view.data);
}

namespace {

constexpr std::int64_t staged_bytes = 16 << 20; // at a time, but for rows that are larger

/// Splits a box along dim 0 so that what is staged at a time stays small: f(part, its first element).
template<class F>
void for_each_slab(const TensorView& view, const Box& box, F&& f) {
  const std::int64_t rows = box.extents.empty() ? 1 : box.extents[0];
  if (empty(box)) return;
  const std::int64_t row = volume(box) / rows;
  const std::int64_t step = std::clamp<std::int64_t>(staged_bytes / (row * size_of(view.dtype)), 1, rows);
  for (std::int64_t begin = 0; begin < rows; begin += step) {
    Box part = box;
    if (!part.extents.empty()) {
      part.offsets[0] += begin;
      part.extents[0] = std::min(step, rows - begin);
    }
    f(part, begin * row);
  }
}

} // namespace

std::int64_t staging_bytes(const Exec& exec, const TensorView& view) {
  if (!exec.on_device() || view.size() == 0) return 0;
  const std::int64_t rows = view.box.extents.empty() ? 1 : view.box.extents[0],
                     bytes = view.size() * size_of(view.dtype);
  return std::min(bytes, std::max(staged_bytes, bytes / rows));
}

void download(const Exec& exec, const TensorView& view, const Box& box, void* host) {
  if (!exec.on_device()) return pack(exec, view, box, host, Order::logical);
  for_each_slab(view, box, [&](const Box& part, std::int64_t first) {
    const std::int64_t bytes = volume(part) * size_of(view.dtype);
    void* staged = staging(exec, bytes);
    pack(exec, view, part, staged, Order::logical);
    exec.stream().copy(static_cast<std::byte*>(host) + first * size_of(view.dtype), staged, bytes);
  });
  exec.fence();
}

void upload(const Exec& exec, const void* host, const TensorView& view, const Box& box) {
  if (!exec.on_device()) return unpack(exec, host, view, box, Order::logical);
  for_each_slab(view, box, [&](const Box& part, std::int64_t first) {
    const std::int64_t bytes = volume(part) * size_of(view.dtype);
    void* staged = staging(exec, bytes);
    copy_from_host(exec, staged, static_cast<const std::byte*>(host) + first * size_of(view.dtype), bytes);
    unpack(exec, staged, view, part, Order::logical);
  });
}

void copy_box(const Exec& exec, const TensorView& from, const TensorView& to, const Box& box) {
  if (!contains(from.box, box) || !contains(to.box, box)) ensure(false, "a box outside a block: " + to_string(box));
  if (empty(box)) return;
  ensure(from.dtype == to.dtype && (from.spatial == to.spatial || !is_flattened(from)),
         "copies are between blocks of one tensor");
  const Canonical a = canonical(from, from.box), b = canonical(to, to.box);
  for (const Canonical& part : cuboids(from, box)) {
    const Copy copy = between(a, physical_strides(a, from.spatial > 1), b, physical_strides(b, to.spatial > 1), part);
    run(exec, from.dtype, simplified(copy), from.data, to.data);
  }
}

bool is_contiguous(const TensorView& view, const Box& box, std::int64_t* first) {
  *first = 0;
  const Few<Copy> copies = pack_copies(view, box, Order::physical);
  if (copies.count == 0) return true;
  const Copy& copy = copies.items[0];
  *first = copy.from;
  return copy.rank == 0 || (copy.rank == 1 && copy.axes[0].from == 1 && copy.axes[0].to == 1);
}

} // namespace soybean::device
