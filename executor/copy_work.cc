#include "executor/copy_work.h"

#include <fmt/format.h>

namespace crossdock {

std::string RegionKey::to_text() const { return fmt::format("'{}/{}' epoch {}", owner.text(), id.text(), epoch); }

}  // namespace crossdock
