#include "model/page_object.h"

#include <fmt/format.h>

namespace crossdock {

std::string PageObjectKey::to_text() const {
  return fmt::format("page {} layout {} part '{}' {}", page.digest().hex().substr(0, 12), layout.hex().substr(0, 12),
                     part.text(), object == PageObject::kRows ? "rows" : "state");
}

}  // namespace crossdock
