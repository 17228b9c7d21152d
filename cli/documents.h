// Loading and writing documents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/diagnostics.h"
#include "model/wire/documents.h"
#include "planner/kv/plan_json.h"

namespace crossdock::cli {

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

// Loads a document of any kind but a plan. Prints an error and returns nothing on failure; the exit code is then
// kBadInput.
std::optional<AnyDocument> load_any_or_fail(const std::string& path);

// The same for one kind of document.
template <class Document>
std::optional<Valid<Document>> load_or_fail(const std::string& path);

// Appends the paths to `files`; a folder is replaced by its .json files, sorted. Prints an error and returns false when
// a folder has none, or cannot be listed.
bool list_documents(const std::vector<std::string>& paths, std::vector<std::string>& files);

// write_output() of a document. Fails when the document exceeds the limits of its own reader.
int write_document(const std::string& path, const std::string& text, std::string_view what);

}  // namespace crossdock::cli
