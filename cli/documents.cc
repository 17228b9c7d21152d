#include "cli/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "cli/log.h"
#include "cli/output.h"

namespace crossdock::cli {

Result<LoadedDocument> load_document(const std::string& path) {
  const JsonLimits limits;
  TRY(const std::string text, read_file(path, limits.bytes_max));
  LoadedDocument loaded{path, text.size(), Diagnostics(), std::nullopt, std::nullopt};
  const auto begin = std::chrono::steady_clock::now();
  loaded.document = read_any_document(text, limits, loaded.diagnostics);
  // A plan is no AnyDocument. Only a document of an unknown kind is read a second time, and its first diagnostics are
  // kept unless it is a plan.
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
    fail(kBadInput,
         fmt::format("'{}' is a plan: use 'crossdock verify-plan', which proves it and prints its digest", path));
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
    // The order of a folder is that of the file system; output and diagnostics have the order of names.
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return true;
}

int write_document(const std::string& path, const std::string& text, std::string_view what) {
  Diagnostics diagnostics("the document to write");
  // What is written can be read again by the same program, or is not written.
  if (!JsonTree::parse(text, JsonLimits(), diagnostics)) return fail(kFailed, diagnostics.kept().front().to_line());
  return write_output(path, text, what);
}

}  // namespace crossdock::cli
