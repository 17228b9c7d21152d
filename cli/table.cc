#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"
#include "base/utf8.h"

namespace crossdock::cli {
namespace {

// A number or a range of numbers.
bool is_numeric(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789,.-") == std::string::npos && text != "-";
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool to_the_right = is_numeric(row[i]);
      line += fmt::format(fmt::runtime(to_the_right ? "{:>{}}" : "{:<{}}"), row[i], widths[i]);
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string LimitedTable::text() const {
  return table_.text() + (left_out_ == 0 ? "" : fmt::format("... and {} more rows (--rows)\n", grouped(left_out_)));
}

}  // namespace crossdock::cli
