// Every operator of the table has kernels in both precisions and a case in this harness, and the other way round.
#include "base/error.hpp"
#include "kernels/kernel.hpp"
#include "ops/cases.hpp"
#include "ops/operator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace soybean::ops_test {
namespace {

bool has_kernel(std::string_view op, DType precision) {
  const auto& rows = kernels::table(precision);
  return std::any_of(rows.begin(), rows.end(), [&](const kernels::Kernel& row) { return row.op == op; });
}

TEST(Table, EveryOperatorHasAKernelInBothPrecisions) {
  for (const ops::Operator& op : ops::table())
    for (DType precision : {DType::f32, DType::f64})
      EXPECT_TRUE(has_kernel(op.name, precision)) << op.name << " in " << to_string(precision);
}

TEST(Table, EveryKernelBelongsToAnOperatorAndIsListedOnce) {
  for (DType precision : {DType::f32, DType::f64}) {
    std::set<std::string_view> seen;
    for (const kernels::Kernel& row : kernels::table(precision)) {
      EXPECT_TRUE(ops::exists(row.op)) << row.op;
      EXPECT_TRUE(seen.insert(row.op).second) << row.op << " twice";
    }
  }
}

TEST(Table, EveryOperatorHasACase) {
  std::set<std::string> used;
  for (const Case& c : cases())
    for (const graph::Node& node : c.build(DType::f64, {}).nodes) used.insert(node.op);
  for (const ops::Operator& op : ops::table()) EXPECT_TRUE(used.contains(std::string(op.name))) << op.name;
}

TEST(Table, AMissingKernelIsABugThatNamesIt) {
  try {
    kernels::find("no_such_operator", DType::f32);
    FAIL() << "found";
  } catch (const Bug& bug) {
    EXPECT_STREQ(bug.what(), "no fp32 kernel for operator no_such_operator");
  }
}

} // namespace
} // namespace soybean::ops_test
