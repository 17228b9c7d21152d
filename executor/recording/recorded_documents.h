// The documents of a recording: each has a line of its own, once, and everything else names it by its digest. A
// transfer job is such a document too; it names its bindings, and the planner makes it again.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/sha256.h"
#include "executor/kv/kv_transfer.h"
#include "executor/ports.h"
#include "executor/transfer_job.h"
#include "model/wire/describe.h"
#include "model/wire/documents.h"

namespace crossdock {

inline constexpr std::string_view kTransferJobKind = "crossdock.transfer_job";

// Names documents while a recording is written, and makes the line of each that was not named before.
class DocumentNamer {
 public:
  // The pointer is not null. Its digest is computed once as long as the document lives.
  template <class Document>
  Sha256Digest name(const std::shared_ptr<const Valid<Document>>& document) {
    if (const Sha256Digest* known = find_known(document)) return *known;
    return remember(document, name(*document));
  }
  template <class Document>
  Sha256Digest name(const Valid<Document>& document) {
    return add_line(AnyDocument(document));
  }
  // Of KV cache, as are all that a recording has; not null.
  Sha256Digest name(const AnyBinding& binding) { return name(binding.as<RuntimeBinding>()); }
  Sha256Digest name(const AnyManifest& manifest) { return name(manifest.as<StoreManifest>()); }
  Sha256Digest name(const std::shared_ptr<const TransferJob>& job);

  // The lines that were made since the last call.
  std::vector<std::string> take_lines() { return std::exchange(lines_, {}); }

 private:
  static constexpr size_t kKnownMax = 65536;

  struct Known {
    std::weak_ptr<const void> document;
    Sha256Digest digest;
  };

  const Sha256Digest* find_known(const std::shared_ptr<const void>& document) const;
  Sha256Digest remember(const std::shared_ptr<const void>& document, const Sha256Digest& digest);
  Sha256Digest add_line(const AnyDocument& document);
  void add_line(const Sha256Digest& digest, std::string_view kind, std::string_view text);

  std::map<const void*, Known> known_;
  std::set<Sha256Digest> written_;
  std::vector<std::string> lines_;
};

// The documents that a reader has come across, by digest.
// What a recording names may be missing in it: look-ups then return null and remember the first miss, so that a reader
// reports one cause and not every field that followed from it.
class KnownDocuments {
 public:
  // Takes the fields of a document line. False, and diagnostics are added, when a rule is broken or the digest is not
  // that of the text.
  bool add(ObjectReader& in, const JsonCursor& line);

  // Null, and missing() says why, when the digest names no document of that kind.
  template <class Document>
  std::shared_ptr<const Valid<Document>> find(const Sha256Digest& digest);
  // Makes the job when it is asked for first.
  // Null, and missing() says why, when there is no such job or the planner makes another plan of it now.
  std::shared_ptr<const TransferJob> find_job(const Sha256Digest& digest);
  // What jobs are made from; before the first look-up of a job.
  void set_job_context(KvTransfer context) { context_ = std::move(context); }

  // The first thing that was not there; empty when everything was.
  const std::string& missing() const { return missing_; }

 private:
  template <class Document>
  using Shared = std::shared_ptr<const Valid<Document>>;
  using SharedDocument = OfEachDocument<std::variant, Shared>;
  // A job as its line says it.
  struct JobText {
    bool checksum = false;
    Sha256Digest plan;
    std::vector<AnyBinding> source_bindings;
    std::vector<AnyBinding> target_bindings;
    std::map<ParticipantId, PeerId> source_peers;
    std::map<ParticipantId, PeerId> target_peers;
    std::shared_ptr<const TransferJob> made;
  };

  JobText decode_job(const JsonCursor& cursor);
  std::shared_ptr<const TransferJob> make(const JobText& text, std::string& why) const;
  void miss(std::string what) {
    if (missing_.empty()) missing_ = std::move(what);
  }

  std::map<Sha256Digest, SharedDocument> documents_;
  std::map<Sha256Digest, JobText> jobs_;
  std::optional<KvTransfer> context_;
  std::string missing_;
};

namespace form {

// A document or a job by its digest: read with KnownDocuments, written with a DocumentNamer. The pointer that is
// written is not null; the one that is read is where `documents` misses it.
template <class Documents>
struct NamedBy {
  Documents& documents;

  template <class Document>
  void read(const JsonCursor& cursor, std::shared_ptr<const Valid<Document>>& document) const {
    document = documents.template find<Document>(cursor.digest());
  }
  void read(const JsonCursor& cursor, AnyBinding& binding) const {
    binding = documents.template find<RuntimeBinding>(cursor.digest());
  }
  void read(const JsonCursor& cursor, AnyManifest& manifest) const {
    if (const auto found = documents.template find<StoreManifest>(cursor.digest())) manifest = AnyManifest(found);
  }
  void read(const JsonCursor& cursor, std::shared_ptr<const TransferJob>& job) const {
    job = documents.find_job(cursor.digest());
  }
  template <class Pointer>
  void write(JsonWriter& out, const Pointer& pointer) const {
    CHECK(pointer != nullptr);
    kDigest.write(out, documents.name(pointer));
  }
};
template <class Documents>
NamedBy<Documents> named_by(Documents& documents) {
  return {documents};
}

}  // namespace form
}  // namespace crossdock
