#include "driver.hpp"

namespace deepum::runtime {

Driver& driver() noexcept {
  static constinit Driver functions;
  return functions;
}

}  // namespace deepum::runtime
