// One tensor of more than 2 GiB: counts and offsets are 64 bits everywhere. Needs about 10 GB.
#include "comm/comm.hpp"

#include <gtest/gtest.h>

namespace {

using namespace soybean;
using namespace soybean::comm;

constexpr std::int64_t n = 600'000'011; // floats: 2.4 GB
constexpr std::int64_t step = 61;       // every such element is looked at

float value(int rank, std::int64_t i) {
  return static_cast<float>(((i ^ (i >> 20)) & 1023) + rank); // no power of two away is the same
}

class Large : public ::testing::TestWithParam<const char*> {
protected:
  void fill() {
    for (std::int64_t i = 0; i < n; ++i) data_[i] = value(comm_->rank(), i);
  }
  std::unique_ptr<Comm> comm_ = make_comm(GetParam());
  device::Exec exec_{1};
  std::vector<float> data_ = std::vector<float>(n);
};

TEST_P(Large, AllReduce) {
  fill();
  Collective c{.kind = Kind::all_reduce, .group = {0, 1}, .counts = {n}};
  c.send = c.recv = data_.data();

  comm_->wait(comm_->start(c, exec_));

  for (std::int64_t i = 0; i < n; i += step) ASSERT_EQ(data_[i], value(0, i) + value(1, i)) << i;
  EXPECT_EQ(sum(*comm_, comm_->counters().received_bytes), 2 * n * 4);
}

TEST_P(Large, ReduceScatterInPlace) {
  fill();
  const std::int64_t first = n - 7;
  Collective c{.kind = Kind::reduce_scatter, .group = {0, 1}, .counts = {first, 7}};
  c.send = data_.data();
  c.recv = data_.data() + (comm_->rank() == 0 ? 0 : first);

  comm_->wait(comm_->start(c, exec_));

  const std::int64_t begin = comm_->rank() == 0 ? 0 : first, end = comm_->rank() == 0 ? first : n;
  for (std::int64_t i = begin; i < end; i += begin == 0 ? step : 1) ASSERT_EQ(data_[i], value(0, i) + value(1, i)) << i;
  EXPECT_EQ(sum(*comm_, comm_->counters().received_bytes), n * 4);
}

TEST_P(Large, Exchange) {
  Collective c{.kind = Kind::exchange};
  if (comm_->rank() == 0) {
    fill();
    c.sends = {{1, data_.data(), n}};
  } else {
    c.receives = {{0, data_.data(), n}};
  }

  comm_->wait(comm_->start(c, exec_));

  for (std::int64_t i = 0; i < n; i += step) ASSERT_EQ(data_[i], value(0, i)) << i;
  EXPECT_EQ(comm_->counters().received_bytes, comm_->rank() == 1 ? n * 4 : 0);
}

INSTANTIATE_TEST_SUITE_P(Backends, Large, ::testing::Values("mpi", "mpi_library"));

} // namespace
