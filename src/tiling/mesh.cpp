#include "tiling/mesh.hpp"

#include "base/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace soybean::tiling {

namespace {

/// Ranks between neighbours along a cut: the product of the later cuts.
int stride(const Mesh& mesh, int cut) {
  int s = 1;
  for (std::size_t i = static_cast<std::size_t>(cut) + 1; i < mesh.cuts.size(); ++i) s *= mesh.cuts[i];
  return s;
}

void append_primes(std::vector<int>& cuts, int number) {
  const auto first = static_cast<std::ptrdiff_t>(cuts.size());
  for (int p = 2; p <= number / p; ++p)
    for (; number % p == 0; number /= p) cuts.push_back(p);
  if (number > 1) cuts.push_back(number);
  std::sort(cuts.begin() + first, cuts.end(), std::greater<>());
}

} // namespace

int ranks(const Mesh& mesh) {
  return std::accumulate(mesh.cuts.begin(), mesh.cuts.end(), 1, std::multiplies<>());
}

int coordinate(const Mesh& mesh, int rank, int cut) {
  return rank / stride(mesh, cut) % mesh.cuts[static_cast<std::size_t>(cut)];
}

int parts(const Mesh& mesh, int cut, int count) {
  int product = 1;
  for (int i = cut; i < cut + count; ++i) product *= mesh.cuts[static_cast<std::size_t>(i)];
  return product;
}

std::vector<int> group(const Mesh& mesh, int rank, int cut, int count) {
  const int size = parts(mesh, cut, count), step = stride(mesh, cut + count - 1);
  const int first = rank - rank / step % size * step;
  std::vector<int> members;
  members.reserve(static_cast<std::size_t>(size));
  for (int c = 0; c < size; ++c) members.push_back(first + c * step);
  return members;
}

namespace {

constexpr std::size_t most_default_cuts = 4;

/// Makes one cut of the two neighbours with the smallest product, the innermost of equals.
void merge_smallest(std::vector<int>& cuts) {
  std::size_t best = cuts.size() - 2;
  for (std::size_t i = cuts.size() - 1; i-- > 0;)
    if (cuts[i] * cuts[i + 1] < cuts[best] * cuts[best + 1]) best = i;
  cuts[best] *= cuts[best + 1];
  cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
}

} // namespace

Mesh make_mesh(const std::vector<int>& ranks_per_host) {
  ensure(!ranks_per_host.empty() && std::ranges::all_of(ranks_per_host, [](int n) { return n >= 1; }),
         "every host has a rank");
  std::vector<int> between, within; // hosts
  const bool equal = std::ranges::all_of(ranks_per_host, [&](int n) { return n == ranks_per_host.front(); });
  if (equal) {
    append_primes(between, static_cast<int>(ranks_per_host.size()));
    append_primes(within, ranks_per_host.front());
  } else {
    append_primes(between, std::accumulate(ranks_per_host.begin(), ranks_per_host.end(), 0));
  }
  while (between.size() + within.size() > most_default_cuts)
    merge_smallest(between.size() > within.size() ? between : within);
  Mesh mesh{between};
  mesh.cuts.insert(mesh.cuts.end(), within.begin(), within.end());
  return mesh;
}

Mesh make_mesh(const std::vector<std::int64_t>& cuts, int ranks) {
  std::int64_t product = 1;
  bool fits = true;
  for (std::int64_t cut : cuts) {
    if (cut < 2)
      fail("parallel.mesh: parts of a cut, got {} in [{}] expected at least 2. leave out cuts of one part", cut,
           fmt::join(cuts, ", "));
    fits = fits && cut <= ranks / product; // also keeps the product from overflowing
    if (fits) product *= cut;
  }
  if (!fits || product != ranks)
    fail("parallel.mesh: product of the cuts, got [{}] expected {}, the number of ranks. change the cuts or the number "
         "of ranks",
         fmt::join(cuts, ", "), ranks);
  return {std::vector<int>(cuts.begin(), cuts.end())};
}

Mesh prefix(const Mesh& mesh, int cuts) {
  return {std::vector<int>(mesh.cuts.begin(), mesh.cuts.begin() + cuts)};
}

std::string to_string(const Mesh& mesh) {
  return mesh.cuts.empty() ? "1" : fmt::format("{}", fmt::join(mesh.cuts, "x"));
}

} // namespace soybean::tiling
