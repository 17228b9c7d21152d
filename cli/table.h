// Tables for people.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace crossdock::cli {

// A table with aligned columns: numbers (as text) to the right, everything else to the left. Makes cells printable.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Rows up to a limit, then a line with the number of rows left out.
class LimitedTable {
 public:
  LimitedTable(std::vector<std::string> header, uint64_t row_count_max)
      : table_(std::move(header)), left_(row_count_max) {}

  // Calls make_row() for a row that is shown.
  template <class MakeRow>
  void add_row(MakeRow make_row) {
    if (left_ == 0) {
      ++left_out_;
      return;
    }
    --left_;
    table_.add(make_row());
  }
  void add(std::vector<std::string> row) {
    add_row([&] { return std::move(row); });
  }
  std::string text() const;

 private:
  Table table_;
  uint64_t left_;
  uint64_t left_out_ = 0;
};

}  // namespace crossdock::cli
