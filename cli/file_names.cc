#include "cli/file_names.h"

#include <fmt/format.h>

#include <string_view>

#include "base/utf8.h"

namespace crossdock::cli {

std::string escaped_name(const std::string& name) {
  constexpr std::string_view kKept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  std::string escaped;
  for (const char byte : name)
    escaped += kKept.find(byte) != std::string_view::npos ? std::string(1, byte)
                                                          : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  return escaped;
}

std::string json_path(const std::string& path) { return is_utf8(path) ? path : printable(path); }

}  // namespace crossdock::cli
