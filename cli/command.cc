#include "cli/command.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/utf8.h"

namespace crossdock::cli {
namespace {

// Holds back interrupts, so that a file under its temporary name is not left behind.
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

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("crossdock", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("crossdock: %v");
    made.set_level(spdlog::level::warn);
    return made;
  }();
  return instance;
}

// A number or a range of numbers.
bool is_numeric(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789,.-") == std::string::npos && text != "-";
}

}  // namespace

void tell(std::string_view line) {
  const std::string text = fmt::format("crossdock: {}\n", printable(line));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Status flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Status();
  return Status(Code::kIo, "cannot write to standard output");
}

int fail(ExitCode exit_code, std::string_view message) {
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

void set_verbosity(size_t level) {
  logger().set_level(level == 0 ? spdlog::level::warn : level == 1 ? spdlog::level::info : spdlog::level::debug);
}

bool logs_info() { return logger().should_log(spdlog::level::info); }

bool logs_debug() { return logger().should_log(spdlog::level::debug); }

void log_info(std::string_view message) { logger().info("{}", printable(message)); }

void log_debug(std::string_view message) { logger().debug("{}", printable(message)); }

Result<LoadedDocument> load_document(const std::string& path) {
  const JsonLimits limits;
  TRY(const std::string text, read_file(path, limits.bytes_max));
  LoadedDocument loaded{path, text.size(), Diagnostics(), std::nullopt, std::nullopt};
  const auto begin = std::chrono::steady_clock::now();
  loaded.document = read_any_document(text, limits, loaded.diagnostics);
  if (!loaded.document && loaded.diagnostics.has(Rule::kSchemaName)) {
    Diagnostics diagnostics;
    loaded.plan = read_plan(text, limits, diagnostics);
    if (!diagnostics.has(Rule::kSchemaName)) loaded.diagnostics = diagnostics;
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  log_info(fmt::format("{}: {} bytes read and validated in {:.1f} ms", path, text.size(), took.count()));
  return loaded;
}

std::optional<AnyDocument> load_any_or_fail(const std::string& path) {
  Result<LoadedDocument> loaded = load_document(path);
  if (!loaded.ok()) {
    fail(kBadInput, loaded.status().message());
    return std::nullopt;
  }
  if (loaded.value().plan)
    fail(kBadInput, fmt::format("'{}' is a plan: 'crossdock verify-plan' proves it and tells its digest", path));
  else if (!loaded.value().document)
    fail(path, loaded.value().diagnostics);
  return std::move(loaded).value().document;
}

template <class Document>
std::optional<Valid<Document>> load_or_fail(const std::string& path) {
  const Result<std::string> text = read_file(path, JsonLimits().bytes_max);
  if (!text.ok()) {
    fail(kBadInput, text.status().message());
    return std::nullopt;
  }
  Diagnostics diagnostics;
  std::optional<Valid<Document>> document = read_document<Document>(text.value(), JsonLimits(), diagnostics);
  if (!document) fail(path, diagnostics);
  return document;
}

template std::optional<Valid<CacheSchema>> load_or_fail(const std::string&);
template std::optional<Valid<SnapshotDescriptor>> load_or_fail(const std::string&);
template std::optional<Valid<PlacementManifest>> load_or_fail(const std::string&);
template std::optional<Valid<RuntimeBinding>> load_or_fail(const std::string&);
template std::optional<Valid<StoreLayout>> load_or_fail(const std::string&);

bool list_documents(const std::vector<std::string>& paths, std::vector<std::string>& files) {
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == ".json") found.push_back(entry->path().string());
    if (error || found.empty()) {
      fail(kBadInput, error ? fmt::format("cannot list the folder '{}': {}", path, error.message())
                            : fmt::format("the folder '{}' has no .json file", path));
      return false;
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return true;
}

std::string escaped_name(const std::string& name) {
  constexpr std::string_view kKept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  std::string escaped;
  for (const char byte : name)
    escaped += kKept.find(byte) != std::string_view::npos ? std::string(1, byte)
                                                          : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  return escaped;
}

std::string json_path(const std::string& path) { return is_utf8(path) ? path : printable(path); }

int write_document(const std::string& path, const std::string& text, std::string_view what) {
  Diagnostics diagnostics("the document to write");
  if (!JsonTree::parse(text, JsonLimits(), diagnostics)) return fail(kFailed, diagnostics.kept().front().to_line());
  return write_output(path, text, what);
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

std::string grouped(uint64_t number) {
  const std::string digits = fmt::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string amount(double number) {
  if (number == std::floor(number) && number < 1e18) return grouped(static_cast<uint64_t>(number));
  return fmt::format("{:.2f}", number);
}

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
