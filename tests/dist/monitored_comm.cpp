// Runs collectives of all kinds and prints, per rank, the bytes its Comm counted. monitoring_test.cpp compares them
// with what the MPI library saw.
#include "comm/comm.hpp"
#include "comm/mpi_session.hpp"

#include <fmt/core.h>

#include <cstring>
#include <numeric>

using namespace soybean;
using namespace soybean::comm;

int main(int argc, char** argv) {
  const MpiSession mpi(&argc, &argv);
  const std::unique_ptr<Comm> comm = make_comm("mpi");
  const device::Exec exec(1);
  const int p = comm->size(), me = comm->rank();
  std::vector<int> everyone(static_cast<std::size_t>(p));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<float> data(3'000'017), result(data.size());
  const auto run = [&](const Collective& c) { comm->wait(comm->start(c, exec)); };
  for (std::int64_t n : {std::int64_t{0}, std::int64_t{5}, std::int64_t{9001}, std::ssize(data)}) {
    run({.kind = Kind::all_reduce, .group = everyone, .send = data.data(), .recv = data.data(), .counts = {n}});
    std::vector<std::int64_t> counts(everyone.size());
    counts[p / 2] = n - n / 3;
    counts[0] += n / 3;
    run({.kind = Kind::reduce_scatter,
         .group = everyone,
         .send = data.data(),
         .recv = result.data(),
         .counts = counts});
    Collective exchange{.kind = Kind::exchange, .dtype = DType::i32}; // all to the next rank, n/2 to itself
    exchange.sends = {{(me + 1) % p, data.data(), n}, {me, data.data(), n / 2}};
    exchange.receives = {{(me + p - 1) % p, result.data(), n}, {me, result.data() + n / 2, n / 2}};
    run(exchange);
  }
  const std::int64_t counted = comm->counters().received_bytes;
  const std::vector<std::byte> all = comm->gather_all(std::as_bytes(std::span(&counted, 1)));
  for (int r = 0; me == 0 && r < p; ++r) {
    std::int64_t bytes = 0;
    std::memcpy(&bytes, all.data() + static_cast<std::size_t>(r) * sizeof bytes, sizeof bytes);
    fmt::print("rank {} counted {}\n", r, bytes);
  }
}
