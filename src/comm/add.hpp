#pragma once
// The sums inside collectives, on the host. Called by the back ends when a term has arrived.
#include "base/types.hpp"

namespace soybean::comm {

/// out[i] = a[i] + b[i] for `count` elements. `out` may be `a` or `b`; other overlaps are not allowed. The result does
/// not depend on `threads`. Integers wrap around.
void add(DType type, void* out, const void* a, const void* b, std::int64_t count, int threads);

} // namespace soybean::comm
