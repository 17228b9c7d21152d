// UTF-8 (RFC 3629), taken to the letter: shortest forms only, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace crossdock {

// Takes one code point off the front of a text that is not empty; empty, and nothing is taken, when it is not
// well-formed.
std::optional<uint32_t> take_code_point(std::string_view& text);

bool is_utf8(std::string_view text);

// At most about `bytes_max` bytes of the text, cut between characters, then "..." when something is left out.
std::string shorten(std::string_view text, size_t bytes_max);

// The text as one line that a terminal shows as it is: bytes that are not UTF-8 and characters that control a terminal
// or the direction of writing become \xNN or \u{NNNN}.
std::string printable(std::string_view text);

}  // namespace crossdock
