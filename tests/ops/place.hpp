#pragma once
// Where the harness runs kernels of a precision: on the host in test_ops, f32 on an accelerator in cuda_ops. Each
// program links its own source (place.cpp here, tests/cuda/place.cpp).
#include "base/types.hpp"
#include "device/exec.hpp"
#include "ops/cases.hpp"

#include <gtest/gtest.h>

namespace soybean::ops_test {

device::Exec exec_for(DType precision);

/// Tests of a case on either.
class OnPlace : public ::testing::TestWithParam<Case> {
protected:
  void SetUp() override;
  void TearDown() override;
};

} // namespace soybean::ops_test
