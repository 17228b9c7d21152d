#include "cli/output.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/number_text.h"
#include "base/utf8.h"
#include "model/wire/json_writer.h"

namespace crossdock::cli {
namespace {

// Blocks interrupts, so that no temporary file is left behind.
class InterruptsHeld {
 public:
  InterruptsHeld() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, &before_) == 0);
  }
  ~InterruptsHeld() { CHECK(pthread_sigmask(SIG_SETMASK, &before_, nullptr) == 0); }
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

namespace {

// What fail() said, for print_json_failure(). Commands fail in the main thread alone.
struct Failures {
  bool json = false;
  bool printed = false;  // something went to standard output
  std::vector<std::string> messages;
};

Failures& failures() {
  static Failures all;
  return all;
}

void note_failure(std::string message) {
  constexpr size_t kMax = 1000;
  if (failures().json && failures().messages.size() < kMax) failures().messages.push_back(std::move(message));
}

}  // namespace

void expect_json() { failures().json = true; }

void print_json_failure(int exit_code) {
  if (!failures().json || failures().printed || exit_code == kDone) return;
  JsonWriter out;
  out.begin_object();
  out.key("errors").begin_array();
  for (const std::string& message : failures().messages) out.string(printable(message));
  out.end_array();
  out.key("exit_status").number(static_cast<uint64_t>(exit_code));
  out.end_object();
  print(out.take() + "\n");
}

// Printable: names in messages come from documents and must not control the terminal.
void tell(std::string_view line) {
  const std::string text = fmt::format("crossdock: {}\n", printable(line));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void print(std::string_view text) {
  if (!text.empty()) failures().printed = true;
  std::fwrite(text.data(), 1, text.size(), stdout);
}

Status flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Status();
  return Status(Code::kIo, "cannot write to standard output");
}

int fail(ExitCode exit_code, std::string_view message) {
  note_failure(std::string(message));
  tell(fmt::format("error: {}", message));
  return exit_code;
}

std::string diagnostic_lines(const std::string& path, const Diagnostics& diagnostics) {
  std::string lines;
  for (const Diagnostic& diagnostic : diagnostics.kept())
    lines += fmt::format("{}: {}\n", printable(path), diagnostic.to_line());
  if (diagnostics.total() > diagnostics.kept().size())
    lines += fmt::format("{}: and {} more errors\n", printable(path), diagnostics.total() - diagnostics.kept().size());
  return lines;
}

int fail(const std::string& path, const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.kept())
    note_failure(fmt::format("{}: {}", path, diagnostic.to_line()));
  const std::string lines = diagnostic_lines(path, diagnostics);
  std::fwrite(lines.data(), 1, lines.size(), stderr);
  return kBadInput;
}

int fail(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.kept()) fail(kBadInput, diagnostic.to_line());
  return kBadInput;
}

void encode_diagnostics(JsonWriter& out, const Diagnostics& diagnostics, bool with_document) {
  out.begin_array();
  for (const Diagnostic& diagnostic : diagnostics.kept()) {
    out.begin_object();
    if (with_document) out.key("document").string(printable(diagnostic.document));
    out.key("message").string(printable(diagnostic.message));
    out.key("place").string(printable(diagnostic.place));
    out.key("rule").string(rule_name(diagnostic.rule));
    out.end_object();
  }
  out.end_array();
}

int write_output(const std::string& path, const std::string& text, std::string_view what) {
  if (path.empty() || path == "-" || path == "/dev/stdout") {
    print(text + "\n");
    return kDone;
  }
  const InterruptsHeld held;
  const Status status = write_file(path, text);
  if (!status.ok()) return fail(kFailed, status.message());
  if (!what.empty()) tell(fmt::format("wrote {}: {}, {} bytes", path, what, grouped(text.size())));
  return kDone;
}

}  // namespace crossdock::cli
