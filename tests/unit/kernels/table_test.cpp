#include "base/error.hpp"
#include "kernels/kernel.hpp"
#include "ops/operator.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace {

using namespace soybean;

TEST(KernelTable, HasOneRowPerOperatorInBothPrecisions) {
  std::set<std::string_view> operators;
  for (const ops::Operator& op : ops::table()) operators.insert(op.name);
  for (DType precision : {DType::f32, DType::f64}) {
    std::set<std::string_view> rows;
    for (const kernels::Kernel& kernel : kernels::table(precision)) {
      EXPECT_TRUE(rows.insert(kernel.op).second) << kernel.op << " twice";
      EXPECT_NE(kernel.run, nullptr) << kernel.op;
      EXPECT_EQ(kernels::find(kernel.op, precision).run, kernel.run);
    }
    EXPECT_EQ(rows, operators);
  }
}

TEST(KernelTable, RefusesUnknownOperatorsAndPrecisions) {
  EXPECT_THROW(kernels::find("conv3d", DType::f32), Bug);
  EXPECT_THROW(kernels::table(DType::i32), Bug);
}

} // namespace
