#pragma once
// What a rank did when: the events behind `--trace`. Filled by the executor and the training loop while there is one,
// written by train/trace_file.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace soybean::runtime {

class Trace {
public:
  enum class Track : std::uint8_t {
    computing, ///< kernels, packing, unpacking, copies
    waiting,   ///< in Comm::start and Comm::wait
    transfer,  ///< from its start until it is seen to be done, between two kernels; several may be under way
    host,      ///< beside the program: reading a batch, telling other ranks
  };
  struct Event {
    Track track;
    std::string name;
    double begin, end;  ///< seconds
    std::int64_t bytes; ///< received; 0 where that says nothing
  };

  double now() const { return at(Clock::now()); }
  double at(std::chrono::steady_clock::time_point time) const {
    return std::chrono::duration<double>(time - origin_).count();
  }
  void add(Track track, std::string name, double begin, double end, std::int64_t bytes = 0) {
    events_.push_back({track, std::move(name), begin, end, bytes});
  }
  const std::vector<Event>& events() const noexcept { return events_; }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point origin_ = Clock::now(); ///< make it on all ranks at once, after a barrier
  std::vector<Event> events_;
};

} // namespace soybean::runtime
