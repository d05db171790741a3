#pragma once
// What tests may ask of the stand-in for NCCL and do to it. In programs the environment sets `ending` and
// `hanging_rank`: SOYBEAN_STANDIN_ENDING, SOYBEAN_STANDIN_HANGING_RANK.
#include <nccl.h>

namespace soybean::test {

struct NcclStandin {
  int alive = 0;                  ///< communicators not yet ended
  int destroyed = 0, aborted = 0; ///< how they ended
  int splits = 0;                 ///< calls of ncclCommSplit
  int all_reduces = 0, reduce_scatters = 0, reduces = 0, sends = 0, receives = 0, groups = 0; ///< calls
  ncclResult_t async = ncclSuccess; ///< what ncclCommGetAsyncError says
  const char* fault = "";           ///< what was wrong with the last call that failed
  /// So many collectives and groups come to an end on this rank, the ones after never do, but by an abort; -1: all do.
  int ending = -1;
  int hanging_rank = -1; ///< in which the program itself stands still in the first that does not end
};
NcclStandin& nccl_standin();

} // namespace soybean::test
