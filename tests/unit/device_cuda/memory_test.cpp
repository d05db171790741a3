#include "device/memory.hpp"

#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/pack.hpp"
#include "device/stream.hpp"
#include "fixture.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace {

using namespace soybean;
using device::Arena;
using device::Exec;

class CudaMemory : public device_cuda_test::StandinTest {};

TEST_F(CudaMemory, IsZeroAndGivenBack) {
  const Exec exec(1, 0);
  const Arena arena(exec, 1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % 256, 0u);
  std::vector<char> host(1000, 1);
  device::copy_to_host(exec, host.data(), arena.data(), 1000);
  EXPECT_EQ(host, std::vector<char>(1000));
  EXPECT_EQ(standins::alive().at("memory"), 1);
}

TEST_F(CudaMemory, SaysWhenThereIsNoRoomAndGoesOn) {
  standins::set_accelerators({{.memory = 4096}});
  const Exec exec(1, 0);
  EXPECT_EQ(device::allocate(0, 4097), nullptr);
  try {
    const Arena arena(exec, 5000);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "memory: no room for a rank's buffers, got 5000 bytes to allocate. use more ranks or a "
                               "smaller data.batch");
  }
  const Arena all(exec, 4096);
  EXPECT_EQ(device::allocate(0, 1), nullptr);
  EXPECT_NE(all.data(), nullptr);
}

TEST_F(CudaMemory, OfTheHostIsThereWithoutAnAccelerator) {
  standins::set_driver(0);
  const Exec exec(1);
  const Arena arena(exec, 1000);
  const std::vector<int> from{1, 2, 3};
  std::vector<int> to(3);
  device::copy_from_host(exec, arena.data(), from.data(), 12);
  device::copy_to_host(exec, to.data(), arena.data(), 12);
  EXPECT_EQ(to, from);
  device::zero(exec, arena.data(), 12);
  EXPECT_EQ(*arena.at<int>(8), 0);
  EXPECT_EQ(standins::calls(), std::vector<std::string>());
}

// What the accelerator may still be reading when the call returns has to be waited for.
TEST_F(CudaMemory, TheHostsSideMayBeReusedAtOnce) {
  const auto waits_of_copy = [](bool page_locked) {
    const Exec exec(1, 0);
    const Arena arena(exec, 16);
    const device::HostBuffer locked(page_locked ? 0 : -1, 16);
    std::fill_n(locked.data(), 16, std::byte(1));
    const std::int64_t before = standins::counts().host_waits;
    device::copy_from_host(exec, arena.data(), locked.data(), 16);
    device::copy_from_host(exec, arena.data(), locked.data(), 0);
    return standins::counts().host_waits - before;
  };
  EXPECT_EQ(waits_of_copy(false), 0); // staged by the driver
  EXPECT_EQ(waits_of_copy(true), 1);
  standins::set_accelerators({{.reads_pageable_memory = true}});
  EXPECT_EQ(waits_of_copy(false), 1);
}

TEST_F(CudaMemory, BlocksGoUpAndDownInLogicalOrder) {
  const Exec exec(1, 0);
  const Shape shape{3, 5, 2, 4};
  const Arena arena(exec, volume(shape) * 4);
  const device::TensorView view{
      .data = arena.data(), .dtype = DType::f32, .box = whole(shape), .global = shape, .spatial = 8};
  std::vector<float> up(static_cast<std::size_t>(volume(shape))), down(up.size()), raw(up.size());
  std::iota(up.begin(), up.end(), 0.0f);
  device::upload(exec, up.data(), view, view.box);
  device::download(exec, view, view.box, down.data());
  EXPECT_EQ(down, up);
  device::copy_to_host(exec, raw.data(), view.data, volume(shape) * 4);
  EXPECT_EQ(raw[1], up[8]); // NHWC: the neighbour in memory is the next channel
}

} // namespace
