#pragma once
// A test that must leave nothing alive and nothing behind that CUDA's libraries would not forgive.
#include "standins/standins.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace soybean::device_cuda_test {

class StandinTest : public ::testing::Test {
protected:
  void SetUp() override { standins::reset(); }
  void TearDown() override {
    EXPECT_EQ(standins::faults(), std::vector<std::string>());
    EXPECT_EQ(standins::alive(), (std::map<std::string, int>()));
  }
};

} // namespace soybean::device_cuda_test
