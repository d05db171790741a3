#pragma once
// Standard output of a run. Rank 0 only.
#include <string>

namespace soybean::train {

/// Prints at once. A reader that has gone, or that stopped reading when a signal arrived (Open MPI's mpirun does,
/// on SIGTERM), must not cost a run its checkpoint: what can not be written is dropped, and false returned with the
/// reason in errno.
bool say(const std::string& text);

} // namespace soybean::train
