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
  kFailed = 1,    // the operation failed; existing files are unchanged
  kBadInput = 2,  // the input or the usage is wrong
};

// Results, to standard output. flush_output() reports failed writes at the end.
void print(std::string_view text);
Status flush_output();

// With --json: a command that fails and has printed no result prints what fail() said as one JSON object to standard
// output, docs/formats/output.md. The first is called before anything fails, the second at the end.
void expect_json();
void print_json_failure(int exit_code);

// One line "crossdock: error: ..." to standard error. Returns `exit_code` for the caller to return.
int fail(ExitCode exit_code, std::string_view message);
// The lines of diagnostic_lines() to standard error. Returns kBadInput.
int fail(const std::string& path, const Diagnostics& diagnostics);

// "crossdock: error: LINE" for each diagnostic kept, when they belong to no file. Returns kBadInput.
int fail(const Diagnostics& diagnostics);

// "FILE: LINE" for each diagnostic kept, and a line with the number of others.
std::string diagnostic_lines(const std::string& path, const Diagnostics& diagnostics);

// The diagnostics kept, as a JSON array of objects: rule, place and message, and the document when there are several.
void encode_diagnostics(JsonWriter& out, const Diagnostics& diagnostics, bool with_document);

// "crossdock: LINE" to standard error.
void tell(std::string_view line);

// Writes exactly this text to `path`, so that sha256sum of a document's file is its digest. Writes to standard output,
// with a newline, when `path` is empty or "-". Interrupts wait until the file is complete. Reports `what` was written
// on standard error, unless it is empty. Returns the exit code.
int write_output(const std::string& path, const std::string& text, std::string_view what);

}  // namespace crossdock::cli
