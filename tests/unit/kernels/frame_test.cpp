// Images moved inside frames of zeros and cut out of them.
#include "kernels/frame.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace soybean::kernels {
namespace {

std::vector<float> framed(const Frame& frame, const std::vector<float>& from) {
  std::vector<float> to(static_cast<std::size_t>(frame.samples * frame.to_h * frame.to_w * frame.channels), 7);
  copy_frame(device::Exec(1), frame, from.data(), to.data());
  return to;
}

TEST(Frame, MovesImagesAndFillsWithZeros) {
  const Frame frame{.samples = 2, .channels = 1, .from_h = 1, .from_w = 2, .to_h = 3, .to_w = 3, .top = 1, .left = 1};
  EXPECT_EQ(framed(frame, {1, 2, 3, 4}), (std::vector<float>{0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0}));
}

TEST(Frame, CutsOffWhatLiesOutside) {
  const Frame frame{.samples = 1, .channels = 2, .from_h = 2, .from_w = 2, .to_h = 1, .to_w = 3, .top = -1, .left = 0};
  EXPECT_EQ(framed(frame, {1, 2, 3, 4, 5, 6, 7, 8}), (std::vector<float>{5, 6, 7, 8, 0, 0}));
}

TEST(Frame, OfNothingIsZeros) {
  const Frame frame{.samples = 1, .channels = 1, .from_h = 0, .from_w = 2, .to_h = 1, .to_w = 2};
  EXPECT_EQ(framed(frame, {}), (std::vector<float>{0, 0}));
  const Frame none{.samples = 0, .channels = 3, .from_h = 1, .from_w = 1, .to_h = 1, .to_w = 1};
  EXPECT_TRUE(framed(none, {}).empty());
}

} // namespace
} // namespace soybean::kernels
