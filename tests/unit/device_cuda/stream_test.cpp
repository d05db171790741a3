#include "device/stream.hpp"

#include "base/error.hpp"
#include "device/arena.hpp"
#include "fixture.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace {

using namespace soybean;
using device::Arena;
using device::Event;
using device::Exec;
using device::HostBuffer;
using device::Recording;
using device::Stream;

class CudaStream : public device_cuda_test::StandinTest {};

constexpr std::int64_t bytes = 40;

/// A pattern in page-locked memory.
HostBuffer pattern(unsigned char first) {
  HostBuffer buffer(0, bytes);
  for (std::int64_t i = 0; i < bytes; ++i) buffer.data()[i] = std::byte(first + i);
  return buffer;
}

bool equal(const HostBuffer& a, const HostBuffer& b) {
  return std::equal(a.data(), a.data() + bytes, b.data());
}

TEST_F(CudaStream, CopiesWithoutTheHostWaiting) {
  const Exec exec(1, 0);
  const Arena memory(exec, 2 * bytes);
  Stream stream(0);
  const HostBuffer from = pattern(3);
  HostBuffer to(0, bytes);
  const std::int64_t waits = standins::counts().host_waits; // the arena's
  stream.copy(memory.data(), from.data(), bytes);
  stream.copy(memory.at(bytes), memory.data(), bytes);
  stream.copy(to.data(), memory.at(bytes), bytes);
  stream.copy(nullptr, nullptr, 0);
  EXPECT_EQ(standins::counts().host_waits, waits);
  EXPECT_EQ(standins::counts().pageable_copies, 0);
  stream.synchronise();
  EXPECT_EQ(standins::counts().host_waits, waits + 1);
  EXPECT_TRUE(equal(from, to));
  std::vector<std::byte> pageable(bytes);
  stream.copy(pageable.data(), memory.data(), bytes);
  EXPECT_EQ(standins::counts().pageable_copies, 1);
}

TEST_F(CudaStream, ZeroesMemory) {
  const Exec exec(1, 0);
  const Arena memory(exec, bytes);
  Stream& stream = exec.stream();
  HostBuffer host = pattern(1);
  stream.copy(memory.data(), host.data(), bytes);
  stream.zero(memory.at(8), bytes - 16);
  stream.zero(memory.data(), 0);
  stream.copy(host.data(), memory.data(), bytes);
  stream.synchronise();
  for (std::int64_t i = 0; i < bytes; ++i)
    EXPECT_EQ(host.data()[i], i < 8 || i >= bytes - 8 ? std::byte(1 + i) : std::byte(0)) << i;
}

TEST_F(CudaStream, EventsOrderStreamsAndTellWhenTheyAreDone) {
  Stream first(0), second(0), host;
  Event event(0);
  EXPECT_TRUE(event.done()); // never recorded
  event.record(first);
  second.wait(event);
  EXPECT_TRUE(event.done());
  EXPECT_EQ(standins::counts().host_waits, 0);
  host.wait(event); // the host's queue works at once, so it has to wait
  EXPECT_EQ(standins::counts().host_waits, 1);
  event.synchronise();
  EXPECT_EQ(standins::counts().host_waits, 2);
  EXPECT_THROW(event.record(host), Bug);
}

TEST_F(CudaStream, MovesLeaveNothingToReleaseTwice) {
  Stream a(0), b(std::move(a));
  EXPECT_EQ(a.native(), nullptr);
  EXPECT_EQ(a.device(), -1);
  EXPECT_EQ(b.device(), 0);
  Event e(0), f(std::move(e));
  f.record(b);
  EXPECT_EQ(e.native(), nullptr);
  HostBuffer x = pattern(5), y(std::move(x)), z;
  EXPECT_EQ(x.data(), nullptr);
  z = std::move(y);
  EXPECT_EQ(z.bytes(), bytes);
  EXPECT_EQ(z.data()[1], std::byte(6));
}

TEST_F(CudaStream, OfTheHostNeedsNoAccelerator) {
  standins::set_driver(0);
  Stream stream, same(-1);
  Event event(-1);
  HostBuffer from(-1, bytes), to(-1, bytes);
  std::iota(reinterpret_cast<char*>(from.data()), reinterpret_cast<char*>(from.data()) + bytes, char{1});
  stream.zero(to.data(), bytes);
  EXPECT_EQ(to.data()[bytes - 1], std::byte(0));
  stream.copy(to.data(), from.data(), bytes);
  event.record(stream);
  same.wait(event);
  same.synchronise();
  event.synchronise();
  EXPECT_TRUE(event.done());
  EXPECT_TRUE(equal(from, to));
  EXPECT_FALSE(Recording().begin(stream));
  EXPECT_EQ(standins::calls(), std::vector<std::string>());
}

TEST_F(CudaStream, WorksOnTheAcceleratorItBelongsTo) {
  standins::set_accelerators({{}, {}});
  const Exec first(1, 0), second(1, 1);
  const Arena a(first, bytes), b(second, bytes);
  const HostBuffer from = pattern(9);
  HostBuffer to(1, bytes);
  Event event(0);
  first.stream().copy(a.data(), from.data(), bytes); // the latest one set is 1
  event.record(first.stream());
  second.stream().wait(event);
  second.stream().zero(b.data(), bytes);
  second.stream().copy(b.data(), a.data(), bytes);
  second.stream().copy(to.data(), b.data(), bytes);
  second.fence();
  EXPECT_TRUE(equal(from, to));
  Event other(1);
  EXPECT_THROW(other.record(first.stream()), Bug);
}

TEST_F(CudaStream, RecordingRunsWhenItIsLaunchedAndOnlyThen) {
  standins::set_recording(true);
  const Exec exec(1, 0);
  const Arena memory(exec, bytes);
  Stream& stream = exec.stream();
  const HostBuffer first = pattern(1), second = pattern(77);
  HostBuffer source(0, bytes), result(0, bytes);
  std::copy(first.data(), first.data() + bytes, source.data());
  std::fill(result.data(), result.data() + bytes, std::byte(0));
  Recording recording;
  EXPECT_FALSE(recording.ready());
  EXPECT_THROW(recording.launch(stream), Bug);
  ASSERT_TRUE(recording.begin(stream));
  stream.copy(memory.data(), source.data(), bytes);
  stream.copy(result.data(), memory.data(), bytes);
  recording.end(stream);
  EXPECT_TRUE(recording.ready());
  EXPECT_EQ(result.data()[3], std::byte(0));
  EXPECT_EQ(standins::counts().recorded, 2);
  recording.launch(stream);
  stream.synchronise();
  EXPECT_TRUE(equal(result, first));
  std::copy(second.data(), second.data() + bytes, source.data());
  recording.launch(stream);
  stream.synchronise();
  EXPECT_TRUE(equal(result, second));
  ASSERT_TRUE(recording.begin(stream)); // another one takes its place
  stream.zero(memory.data(), bytes);
  recording.end(stream);
  recording.launch(stream);
  EXPECT_EQ(standins::counts().launches, 3);
}

TEST_F(CudaStream, RecordingTakesInStreamsThatWaitForItsEvents) {
  standins::set_recording(true);
  const Exec exec(1, 0);
  const Arena memory(exec, bytes);
  Stream &compute = exec.stream(), communication(0);
  Event ready(0), back(0);
  HostBuffer result(0, bytes);
  Recording recording;
  ASSERT_TRUE(recording.begin(compute));
  compute.zero(memory.data(), bytes);
  ready.record(compute);
  communication.wait(ready);
  communication.copy(result.data(), memory.data(), bytes);
  back.record(communication);
  compute.wait(back);
  recording.end(compute);
  EXPECT_EQ(standins::counts().recorded, 2);
  std::fill(result.data(), result.data() + bytes, std::byte(1));
  communication.synchronise(); // it records no longer
  recording.launch(compute);
  EXPECT_EQ(result.data()[bytes - 1], std::byte(0));
}

TEST_F(CudaStream, RecordingThatCannotEndIsAnError) {
  standins::set_recording(true);
  const Exec exec(1, 0);
  const Arena memory(exec, bytes);
  Stream &compute = exec.stream(), communication(0);
  Event ready(0);
  Recording recording;
  ASSERT_TRUE(recording.begin(compute));
  ready.record(compute);
  communication.wait(ready);
  communication.zero(memory.data(), bytes); // nobody waits for it
  try {
    recording.end(compute);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("cudaStreamEndCapture: failed, capture sequence contains a fork that was not joined"))
        << error.what();
    EXPECT_EQ(error.code(), ExitCode::failed);
  }
  EXPECT_FALSE(recording.ready());
  ASSERT_TRUE(recording.begin(compute));
  EXPECT_THROW(compute.synchronise(), Error); // nothing runs that it could wait for
  EXPECT_THROW(recording.end(compute), Error);
  standins::set_recording(false);
  EXPECT_FALSE(recording.begin(compute));
}

// That the stand-ins see what they are there to see.
TEST(Standins, NoteUsesOfWhatIsGone) {
  standins::reset();
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(standins::alive(), (std::map<std::string, int>{{"event", 1}, {"stream", 1}}));
  cudaEventDestroy(event);
  EXPECT_NE(cudaEventRecord(event, stream), cudaSuccess);
  cudaStreamDestroy(stream);
  EXPECT_NE(cudaStreamSynchronize(stream), cudaSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 8), cudaSuccess);
  EXPECT_NE(cudaMemsetAsync(memory, 0, 9, cudaStreamLegacy), cudaSuccess);
  cudaFree(memory);
  EXPECT_NE(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(standins::faults(),
            (std::vector<std::string>{"cudaEventRecord: a destroyed event", "cudaStreamSynchronize: a destroyed stream",
                                      "cudaMemsetAsync: what is set is not in the accelerator's memory",
                                      "cudaFree: not a block that was allocated"}));
}

} // namespace
