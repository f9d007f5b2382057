#include "driver.hpp"

namespace deepum::runtime {

Driver& driver() noexcept {
  static constinit Driver table;
  return table;
}

}  // namespace deepum::runtime
