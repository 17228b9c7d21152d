#include "tests/crash/event.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <sstream>

namespace crossdock::testing {
namespace {

constexpr std::array<const char*, 12> kKinds = {"open",  "upload", "abort", "abandon",      "remove",     "pin",
                                                "unpin", "read",   "pages", "remove-pages", "read-pages", "collect"};

std::string word(const std::string& text) { return text.empty() ? "-" : text; }
std::string unword(const std::string& text) { return text == "-" ? "" : text; }

}  // namespace

std::string to_line(const Event& event) {
  std::string line = fmt::format("{} {} {} {} {} {} {} {} {} {}", event.thread, static_cast<int>(event.kind),
                                 event.done ? 1 : 0, static_cast<int>(event.code), word(event.txn), word(event.name),
                                 event.expires ? 1 : 0, event.sequence, word(event.digest), event.pages.size());
  for (const uint64_t page : event.pages) line += fmt::format(" {}", page);
  return line + "\n";
}

std::optional<Event> from_line(const std::string& line) {
  std::istringstream in(line);
  Event event;
  int kind = 0;
  int done = 0;
  int code = 0;
  int expires = 0;
  size_t page_count = 0;
  in >> event.thread >> kind >> done >> code >> event.txn >> event.name >> expires >> event.sequence >> event.digest >>
      page_count;
  if (!in || kind < 0 || static_cast<size_t>(kind) >= kKinds.size()) return std::nullopt;
  for (uint64_t page = 0; page_count > 0 && in >> page; --page_count) event.pages.push_back(page);
  if (!in) return std::nullopt;
  event.kind = static_cast<StepKind>(kind);
  event.done = done != 0;
  event.code = static_cast<Code>(code);
  event.expires = expires != 0;
  event.txn = unword(event.txn);
  event.name = unword(event.name);
  event.digest = unword(event.digest);
  return event;
}

std::string to_text(const Event& event) {
  std::string text = fmt::format("thread {} {} '{}' '{}'", event.thread, kKinds[static_cast<size_t>(event.kind)],
                                 event.txn, event.name);
  if (event.expires) text += " expires";
  if (event.sequence != 0) text += fmt::format(" publication {}", event.sequence);
  if (!event.pages.empty()) text += fmt::format(" pages {}", fmt::join(event.pages, ","));
  return text + (event.done ? fmt::format(": {}", code_name(event.code)) : " ...");
}

}  // namespace crossdock::testing
