#include "comm/accelerator.hpp"

#include "base/error.hpp"

namespace soybean::comm {

std::string accelerator_comm() {
  return "";
}

bool devices_shared(Comm&, const Place&) {
  throw Bug("a build without accelerators");
}

std::unique_ptr<Comm> make_accelerator_comm(std::unique_ptr<Comm>, const Place&) {
  throw Bug("a build without accelerators");
}

} // namespace soybean::comm
