// What the commands of the program share: where output goes, how documents are loaded, what the exit codes mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/diagnostics.h"
#include "model/wire/documents.h"
#include "model/wire/json_writer.h"
#include "planner/kv/plan_json.h"

namespace crossdock::cli {

class Command;

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,    // the operation failed; nothing is lost
  kBadInput = 2,  // the input or the usage is at fault
};

// Each adds its subcommand to the program.
void add_schema_command(Command& app);
void add_placement_command(Command& app);
void add_validate_command(Command& app);
void add_inspect_command(Command& app);
void add_digest_command(Command& app);
void add_convert_command(Command& app);
void add_snapshot_command(Command& app);
void add_bind_command(Command& app);
void add_plan_command(Command& app);
void add_verify_plan_command(Command& app);
void add_replay_command(Command& app);
void add_reshard_command(Command& app);
void add_store_command(Command& app);
void add_simulate_command(Command& app);
void add_check_command(Command& app);
void add_completion_command(Command& app);

// Results, to standard output. A failed write is found by flush_output() at the end.
void print(std::string_view text);
Status flush_output();

// One line "crossdock: error: ..." to standard error. Returns `exit_code` for the caller to return.
int fail(ExitCode exit_code, std::string_view message);
// The lines of diagnostic_lines() to standard error. Returns kBadInput.
int fail(const std::string& path, const Diagnostics& diagnostics);

// "crossdock: error: LINE" of each diagnostic kept, where no file is to blame. Returns kBadInput.
int fail(const Diagnostics& diagnostics);

// "FILE: LINE" of each diagnostic kept and how many more there are, as text of lines.
std::string diagnostic_lines(const std::string& path, const Diagnostics& diagnostics);

// The diagnostics kept as a JSON array of objects: rule, place, message, and where several documents are in question
// the document.
void encode_diagnostics(JsonWriter& out, const Diagnostics& diagnostics, bool with_document);

// Log lines of the program's own doings go to standard error when asked for: with --verbose times, sizes and states of
// protocols, given twice each of their operations too. Thread-safe.
void set_verbosity(size_t level);
bool logs_info();
bool logs_debug();
void log_info(std::string_view message);
void log_debug(std::string_view message);

struct LoadedDocument {
  std::string path;
  uint64_t bytes = 0;
  Diagnostics diagnostics;  // why there is no document
  std::optional<AnyDocument> document;
  std::optional<PlanDocument> plan;  // instead of a document, where the file holds a plan
};

// Reads and validates a file ("-": standard input). A file that cannot be read is a failed status; one that breaks
// rules has diagnostics instead of a document.
Result<LoadedDocument> load_document(const std::string& path);

// Loads a document of any kind but a plan. Prints what is wrong and is empty when it cannot be had; the exit code is
// then kBadInput.
std::optional<AnyDocument> load_any_or_fail(const std::string& path);

// The same for one kind. Prints what is wrong and is empty when it cannot be had; the exit code is then
// kBadInput.
template <class Document>
std::optional<Valid<Document>> load_or_fail(const std::string& path);

// Folders stand for the .json files in them, sorted. Prints what is wrong and is false when a folder has none, or
// cannot be listed.
bool list_documents(const std::vector<std::string>& paths, std::vector<std::string>& files);

// Writes text to `path`, exactly: sha256sum of a document's file is its digest. To standard output, with a newline,
// when `path` is empty or "-". An interrupt waits until the file is whole. Says on standard error what was written,
// unless `what` is empty.
int write_output(const std::string& path, const std::string& text, std::string_view what);
// The same for a document of ours, after making sure that it is within the limits of its own reader.
int write_document(const std::string& path, const std::string& text, std::string_view what);

// "crossdock: LINE" to standard error.
void tell(std::string_view line);

// A name as that of a file: other bytes than [A-Za-z0-9._-] stand as %XX.
std::string escaped_name(const std::string& name);

// A path as JSON can hold it: itself when it is UTF-8, else escaped.
std::string json_path(const std::string& path);

// "1,234,567"
std::string grouped(uint64_t number);
// The same for whole numbers, else with two decimals.
std::string amount(double number);

// A table with aligned columns; numbers (as text) to the right, everything else to the left. Cells are made printable.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Rows up to a limit, then a line that says how many are left out.
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
