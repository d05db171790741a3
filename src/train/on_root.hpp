#pragma once
// Doing something on rank 0 only, with its result or its error on every rank. Used for files and checks before
// training.
#include "base/error.hpp"
#include "comm/comm.hpp"

#include <string>
#include <utility>

namespace soybean::train {

/// Runs `f` (returning text) on rank 0 and gives its result to every rank. If it throws an Error, every rank throws it.
template<class F>
std::string text_from_root(comm::Comm& comm, F&& f) {
  std::string text;
  char state = 0; // 0: fine, else 1 + exit code
  if (comm.rank() == 0) {
    try {
      text = std::forward<F>(f)();
    } catch (const Error& error) {
      text = error.what();
      state = static_cast<char>(1 + static_cast<int>(error.code()));
    }
  }
  comm.broadcast(&state, 1, 0);
  text = comm::broadcast_text(comm, text);
  if (state == 0) return text;
  Error error(text, static_cast<ExitCode>(state - 1));
  error.mark_on_all_ranks();
  throw error;
}

template<class F>
void on_root(comm::Comm& comm, F&& f) {
  text_from_root(comm, [&] {
    f();
    return std::string();
  });
}

/// Runs `f`, which does exactly the same on every rank (no files, no messages): its Error is everybody's.
template<class F>
decltype(auto) on_all_ranks(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (Error& error) {
    error.mark_on_all_ranks();
    throw;
  }
}

} // namespace soybean::train
