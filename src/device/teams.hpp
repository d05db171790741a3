#pragma once
// teams_for: the loop of kernels that reduce long rows (softmax over many classes). Hides who works on a row: on the
// host one thread, whose loops vectorise, on a device a block of threads. Kernels are structs whose call operator is a
// template of the team:
//   template<class Team> KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::int64_t row) const;
// What a team computes is known to all its threads, and its sums are added in an order that depends on the size alone.
#include "base/error.hpp"
#include "device/rows.hpp"

#include <limits>

namespace soybean::device {

/// One thread of the host.
class HostTeam {
public:
  /// Σ term(i) over i in [0, n), in double.
  template<class Term>
  KOKKOS_INLINE_FUNCTION double sum(std::int64_t n, const Term& term) const {
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(term(i));
    return total;
  }
  /// The largest of term(i), n >= 1; NaN is passed over.
  template<class Term>
  KOKKOS_INLINE_FUNCTION float max(std::int64_t n, const Term& term) const {
    float most = term(0);
#pragma omp simd reduction(max : most)
    for (std::int64_t i = 0; i < n; ++i) most = term(i) > most ? term(i) : most;
    return most;
  }
  /// Whether predicate(i) holds for all of them.
  template<class Predicate>
  KOKKOS_INLINE_FUNCTION bool all(std::int64_t n, const Predicate& predicate) const {
    bool holds = true;
    for (std::int64_t i = 0; i < n; ++i) holds &= predicate(i);
    return holds;
  }
  /// f(i); i is the same thread's in every loop over the same n.
  template<class F>
  KOKKOS_INLINE_FUNCTION void each(std::int64_t n, const F& f) const {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
  /// What the team has written before is seen by all of it.
  KOKKOS_INLINE_FUNCTION void barrier() const {}
  /// Whether this thread is the one that writes the row's results.
  KOKKOS_INLINE_FUNCTION bool leads() const {
    return true;
  }
};

/// A Kokkos team: the same functions.
template<class Member>
class DeviceTeam {
public:
  KOKKOS_INLINE_FUNCTION explicit DeviceTeam(const Member& member) : member_(member) {}

  template<class Term>
  KOKKOS_INLINE_FUNCTION double sum(std::int64_t n, const Term& term) const {
    double total = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member_, n),
        [&](const std::int64_t i, double& part) { part += static_cast<double>(term(i)); }, total);
    return total;
  }
  template<class Term>
  KOKKOS_INLINE_FUNCTION float max(std::int64_t n, const Term& term) const {
    float most = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member_, n),
        [&](const std::int64_t i, float& part) { part = term(i) > part ? term(i) : part; }, Kokkos::Max<float>(most));
    return most;
  }
  template<class Predicate>
  KOKKOS_INLINE_FUNCTION bool all(std::int64_t n, const Predicate& predicate) const {
    int failures = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member_, n), [&](const std::int64_t i, int& part) { part += predicate(i) ? 0 : 1; },
        failures);
    return failures == 0;
  }
  template<class F>
  KOKKOS_INLINE_FUNCTION void each(std::int64_t n, const F& f) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member_, n), [&](const std::int64_t i) { f(i); });
  }
  KOKKOS_INLINE_FUNCTION void barrier() const { member_.team_barrier(); }
  KOKKOS_INLINE_FUNCTION bool leads() const { return member_.team_rank() == 0; }

private:
  const Member& member_;
};

namespace detail {

template<class F, class Policy>
struct OnTeams {
  F f;
  KOKKOS_INLINE_FUNCTION void operator()(const typename Policy::member_type& member) const {
    f(DeviceTeam<typename Policy::member_type>(member), static_cast<std::int64_t>(member.league_rank()));
  }
};

/// On teams of `threads` of an execution space.
template<class Space, class F>
void run_on_teams(const Space& where, std::int64_t n, int threads, const char* label, const F& f) {
  using Policy = Kokkos::TeamPolicy<Space>;
  if (n > std::numeric_limits<int>::max())
    ensure(false, fmt::format("{}: {} rows, more than there are teams", label, n));
  Kokkos::parallel_for(label, Policy(where, static_cast<int>(n), threads), OnTeams<F, Policy>{f});
}

} // namespace detail

/// f(team, i) for i in [0, n), n < 2^31, each doing about `work` elements' worth.
template<class F>
void teams_for(const Exec& exec, std::int64_t n, std::int64_t work, const char* label, const F& f) {
  if (n <= 0) return;
  if (on_host(exec)) {
    const detail::Region region(label);
    const int threads = threads_for(exec, n * std::max<std::int64_t>(work, 1));
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (std::int64_t i = 0; i < n; ++i) f(HostTeam(), i);
  } else if constexpr (!always_on_host) {
    constexpr int team_threads = 128;
    detail::run_on_teams(space(exec), n, team_threads, label, f);
  }
}

} // namespace soybean::device
