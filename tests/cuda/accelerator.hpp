#pragma once
// The accelerators that the tests of this folder run on: stand-ins for CUDA's libraries (accelerator_standin.cpp), or
// those of the machine (accelerator_machine.cpp) in a CUDA build.
#include <string>

namespace soybean::test {

/// The accelerator of the rank with this number on its host; ranks share where there are too few.
int device_of(int local_rank);
/// parallel.comm for ranks on these.
std::string comm_name();
/// Called first in each test.
void begin_accelerated();
/// Called last, when all that the test made is gone: expects that every call was right and nothing is left.
void end_accelerated();

} // namespace soybean::test
