#include "runtime/agreement.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"

#include <cstring>
#include <span>

namespace soybean::runtime {

void check_agreement(comm::Comm& comm, const std::vector<Named>& hashes) {
  std::vector<std::uint64_t> mine;
  mine.reserve(hashes.size());
  for (const Named& named : hashes) mine.push_back(named.hash);
  const std::vector<std::byte> bytes = comm.gather_all(std::as_bytes(std::span(mine)));
  std::vector<std::uint64_t> all(mine.size() * comm.size());
  std::memcpy(all.data(), bytes.data(), bytes.size());
  for (std::size_t h = 0; h < hashes.size(); ++h) {
    const std::uint64_t expected = all[h];
    std::string ranks, got;
    for (int rank = 1; rank < comm.size(); ++rank) {
      const std::uint64_t theirs = all[rank * mine.size() + h];
      if (theirs == expected) continue;
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
      if (got.empty()) got = to_hex(theirs);
    }
    if (ranks.empty()) continue;
    Error error(fmt::format("agreement of ranks: the {} differs, got {} on rank {} expected {} as on rank 0. Start all "
                            "ranks with the same program, model file and options",
                            hashes[h].what, got, ranks, to_hex(expected)),
                ExitCode::failed);
    error.mark_on_all_ranks();
    throw error;
  }
}

void agree(const graph::Graph& graph, const plan::Plan& plan, const std::vector<program::Program>& programs,
           comm::Comm& comm) {
  std::vector<Named> hashes = {{"model", hash_text(graph::to_string(graph))},
                               {"plan", hash_text(plan::to_string(graph, plan))}};
  for (const program::Program& p : programs)
    hashes.push_back({p.training ? "training program" : "validation program", program::hash(graph, p)});
  check_agreement(comm, hashes);
}

} // namespace soybean::runtime
