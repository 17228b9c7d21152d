// What the program prints: results to standard output, messages to standard error, files; and the exit codes.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "model/diagnostics.h"

namespace crossdock {
class JsonWriter;
}

namespace crossdock::cli {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,    // the operation failed; nothing is lost
  kBadInput = 2,  // the input or the usage is at fault
};

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

// "crossdock: LINE" to standard error.
void tell(std::string_view line);

// Writes text to `path`, exactly: sha256sum of a document's file is its digest. To standard output, with a newline,
// when `path` is empty or "-". An interrupt waits until the file is whole. Says on standard error what was written,
// unless `what` is empty.
int write_output(const std::string& path, const std::string& text, std::string_view what);

}  // namespace crossdock::cli
