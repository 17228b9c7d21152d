// Pages of docs/ whose examples the tests read or write. With CROSSDOCK_UPDATE_DOCS=1 in the environment a test that
// finds a generated section out of date writes it anew.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace crossdock::testing {

// The text of a page, by its path in the source tree. A page that cannot be read is a test failure.
std::string doc_page(const std::string& path);

// The contents of the page's code blocks whose fence names this language, in their order.
std::vector<std::string> code_blocks(std::string_view page, const std::string& language);

// Expects that the page holds `generated` between the lines "<!-- generated: NAME -->" and "<!-- end of NAME -->".
void expect_generated(const std::string& path, const std::string& name, const std::string& generated);

}  // namespace crossdock::testing
