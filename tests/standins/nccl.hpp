#pragma once
// What tests may ask of the stand-in for NCCL and do to it.
#include <nccl.h>

namespace soybean::test {

struct NcclStandin {
  int alive = 0;                  ///< communicators not yet ended
  int destroyed = 0, aborted = 0; ///< how they ended
  int splits = 0;                 ///< calls of ncclCommSplit
  int all_reduces = 0, reduce_scatters = 0, reduces = 0, sends = 0, receives = 0, groups = 0; ///< calls
  ncclResult_t async = ncclSuccess; ///< what ncclCommGetAsyncError says
  const char* fault = "";           ///< what was wrong with the last call that failed
};
NcclStandin& nccl_standin();

} // namespace soybean::test
