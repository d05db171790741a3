#include "device/devices.hpp"

#include "base/error.hpp"
#include "device/cuda/architectures.hpp"
#include "fixture.hpp"

#include <set>

namespace {

using namespace soybean;

class CudaDevices : public device_cuda_test::StandinTest {};

TEST_F(CudaDevices, AreNoneWithoutADriver) {
  EXPECT_EQ(device::accelerator(), "cuda");
  standins::set_driver(0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device::device_count(), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(device::accelerator_versions().find("no driver"), std::string::npos) << device::accelerator_versions();
  EXPECT_EQ(device::driver_fault(), "");
  standins::reset();
  standins::set_accelerators({});
  EXPECT_EQ(device::device_count(), 0);
  EXPECT_EQ(device::driver_fault(), "");
}

TEST_F(CudaDevices, AreNoneWithADriverThatIsTooOldWhichIsSaid) {
  standins::set_driver(11040);
  EXPECT_EQ(device::device_count(), 0);
  const std::string text = device::driver_fault();
  EXPECT_TRUE(text.starts_with("the driver is for CUDA 11.4, too old for this program's CUDA ")) << text;
  EXPECT_TRUE(text.ends_with(". update the driver, or build with an older CUDA")) << text;
  EXPECT_NE(device::accelerator_versions().find("driver for CUDA 11.4 (too old)"), std::string::npos);
}

TEST_F(CudaDevices, AreDescribed) {
  standins::set_accelerators({{}, {.name = "Other", .major = 8, .minor = 6, .memory = 5000}});
  ASSERT_EQ(device::device_count(), 2);
  const device::DeviceFacts facts = device::device_facts(1);
  EXPECT_EQ(facts.name, "Other");
  EXPECT_EQ(facts.id, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
  EXPECT_EQ(device::device_id(1), facts.id);
  EXPECT_NE(device::device_id(0), facts.id);
  EXPECT_EQ(facts.major, 8);
  EXPECT_EQ(facts.minor, 6);
  EXPECT_EQ(facts.memory, 5000);
  EXPECT_EQ(facts.free, 5000);
  EXPECT_EQ(facts.architectures, ""); // this build has no kernels
  EXPECT_TRUE(facts.supported);
}

TEST_F(CudaDevices, ThatDoNotAnswerAreErrors) {
  try {
    device::device_facts(7);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("cudaGetDeviceProperties: failed, ")) << error.what();
  }
  standins::fail_call(1); // a driver that is there and does not work is not the same as none
  EXPECT_THROW(device::device_count(), Error);
}

TEST_F(CudaDevices, IdentitiesTakeUpNothing) {
  device::device_id(0);
  EXPECT_EQ(standins::calls(), std::vector<std::string>{"cudaGetDeviceProperties"});
}

TEST(Architectures, FitByMachineCodeOrPortableCode) {
  using device::cuda::has_code_for;
  EXPECT_TRUE(has_code_for("", 7, 0));
  EXPECT_TRUE(has_code_for("native", 7, 0));
  EXPECT_TRUE(has_code_for("all-major", 12, 0));
  EXPECT_TRUE(has_code_for("80", 8, 0));
  EXPECT_TRUE(has_code_for("80", 8, 6));
  EXPECT_TRUE(has_code_for("80", 9, 0)); // compiled when it is loaded
  EXPECT_FALSE(has_code_for("80", 7, 5));
  EXPECT_FALSE(has_code_for("86-real", 8, 0));
  EXPECT_TRUE(has_code_for("80-real", 8, 9));
  EXPECT_FALSE(has_code_for("80-real", 9, 0));
  EXPECT_TRUE(has_code_for("80-virtual", 8, 0));
  EXPECT_FALSE(has_code_for("90-virtual", 8, 9));
  EXPECT_TRUE(has_code_for("70-real,90-real", 9, 0));
  EXPECT_TRUE(has_code_for("70-real;90-real;", 9, 0));
  EXPECT_FALSE(has_code_for("70-real;90-real", 8, 0));
  EXPECT_TRUE(has_code_for("90a", 9, 0));
  EXPECT_FALSE(has_code_for("90a", 10, 0));
  EXPECT_TRUE(has_code_for("100f", 10, 3));
  EXPECT_FALSE(has_code_for("100f", 12, 0));
  EXPECT_TRUE(has_code_for("120", 12, 1));
}

} // namespace
