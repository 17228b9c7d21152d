#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/sha256.h"
#include "sim/report/report_data.h"
#include "sim/report/report_page.inc"  // the files of sim/report/page, as kPageHtml, kPageStyle, kPageScript
#include "sim/report/run_report.h"

namespace crossdock {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text.push_back(i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 0x3f]);
  }
  return text;
}

// For the page's content security policy: no script runs but this one.
std::string source_hash(std::string_view script) {
  const Sha256Digest digest = sha256(script);
  return "sha256-" + base64(std::string(digest.bytes().begin(), digest.bytes().end()));
}

// In JSON, "<" occurs only in strings. With it escaped, no text can end the script element or open a comment.
std::string without_tags(const std::string& json) {
  std::string text;
  for (const char c : json) {
    if (c == '<')
      text += "\\u003c";
    else
      text.push_back(c);
  }
  return text;
}

}  // namespace

// The marks are looked for in the template only, one behind the other, and never in what was put in: a text of the run
// that looks like a mark stays a text.
std::string report_html(const RunReport& report) {
  const std::array<std::pair<std::string_view, std::string>, 4> parts = {{
      {"{{script hash}}", source_hash(kPageScript)},
      {"{{style}}", std::string(kPageStyle)},
      {"{{data}}", without_tags(report_data(report, {}))},
      {"{{script}}", std::string(kPageScript)},
  }};
  std::string page;
  std::string_view rest = kPageHtml;
  for (const auto& [mark, text] : parts) {
    const size_t at = rest.find(mark);
    CHECK(at != std::string_view::npos);
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(at + mark.size());
  }
  page += rest;
  return page;
}

}  // namespace crossdock
