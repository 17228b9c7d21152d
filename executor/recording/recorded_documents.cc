#include "executor/recording/recorded_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "executor/recording/values_json.h"
#include "model/wire/codec.h"
#include "planner/kv/plan_json.h"

// A digest is the name of a document, so a document is written once and compared by its name. A reader recomputes every
// digest: a recording from outside could otherwise give a name to another text.
namespace crossdock {
namespace {

// A plan is named by its digest, and made again when the job is.
struct PlanForm {
  void read(const JsonCursor& cursor, Sha256Digest& plan) const { form::kDigest.read(cursor, plan); }
  void write(JsonWriter& out, const Erased& plan) const { form::kDigest.write(out, digest(*kv_plan(plan))); }
};

// `job` is a TransferJob where it is written, and the text of one where it is read.
template <class Documents>
auto job_with(Documents& documents) {
  return form::object([&documents](auto& fields, auto& job) {
    constexpr auto kPeers = form::pairs_of("participant", form::kText, "peer", form::kText, Rule::kParticipantRepeated);
    fields.header(kTransferJobKind);
    fields.required("checksum", job.checksum, form::kBoolean);
    fields.required("plan", job.plan, PlanForm());
    fields.required("source_bindings", job.source_bindings, form::list_of(form::named_by(documents)));
    fields.required("source_peers", job.source_peers, kPeers);
    fields.required("target_bindings", job.target_bindings, form::list_of(form::named_by(documents)));
    fields.required("target_peers", job.target_peers, kPeers);
  });
}

// The first binding whose participant has no peer to send to; null when all have one.
const InstanceBinding* without_peer(const std::vector<AnyBinding>& bindings,
                                    const std::map<ParticipantId, PeerId>& peers) {
  for (const AnyBinding& binding : bindings)
    if (!peers.contains(binding->participant)) return &*binding;
  return nullptr;
}

}  // namespace

// The address alone is not enough: another document may live there by now. The weak pointer tells.
const Sha256Digest* DocumentNamer::find_known(const std::shared_ptr<const void>& document) const {
  const auto found = known_.find(document.get());
  return found == known_.end() || found->second.document.lock() != document ? nullptr : &found->second.digest;
}

Sha256Digest DocumentNamer::remember(const std::shared_ptr<const void>& document, const Sha256Digest& digest) {
  // Only a cache of digests; what was written is remembered in written_.
  if (known_.size() >= kKnownMax) known_.clear();
  known_[document.get()] = Known{document, digest};
  return digest;
}

// Bindings that the job names are written before the job, because naming them adds their lines first.
Sha256Digest DocumentNamer::name(const std::shared_ptr<const TransferJob>& job) {
  if (const Sha256Digest* known = find_known(job)) return *known;
  JsonWriter out;
  job_with(*this).write(out, *job);
  const std::string text = out.take();
  const Sha256Digest digest = sha256(text);
  add_line(digest, kTransferJobKind, text);
  return remember(job, digest);
}

Sha256Digest DocumentNamer::add_line(const AnyDocument& document) {
  const std::string text = to_json(document);
  const Sha256Digest digest = sha256(text);
  add_line(digest, schema_name(document), text);
  return digest;
}

void DocumentNamer::add_line(const Sha256Digest& digest, std::string_view kind, std::string_view text) {
  if (!written_.insert(digest).second) return;
  JsonWriter out;
  out.begin_object();
  out.key("document").string(digest.hex());
  out.key("kind").string(kind);
  out.key("text").raw(text);
  out.end_object();
  lines_.push_back(out.take());
}

// A job is kept as text until it is asked for: the documents that its planner needs are known only after the header was
// read.
bool KnownDocuments::add(ObjectReader& in, const JsonCursor& line) {
  const uint64_t diagnostics_before = line.diagnostics.total();
  const Sha256Digest stated = in.digest("document");
  const std::string kind = in.string("kind");
  Sha256Digest own;
  in.required("text", [&](const JsonCursor& text) {
    if (kind == kTransferJobKind) {
      JobText job = decode_job(text);
      own = sha256(canonical_text(text.value));
      jobs_.emplace(own, std::move(job));
      return;
    }
    const std::span<const std::string_view> schemas = document_schemas();
    const auto known = std::find(schemas.begin(), schemas.end(), kind);
    if (known == schemas.end())
      return line.refuse(Rule::kSchemaName, fmt::format("'{}' is no kind of document that a recording has", kind));
    std::optional<AnyDocument> document = decode_document_of(text, std::span(&*known, 1));
    if (!document) return;
    own = digest(*document);
    documents_.emplace(own, std::visit(
                                []<class Document>(Valid<Document>&& valid) -> SharedDocument {
                                  return std::make_shared<const Valid<Document>>(std::move(valid));
                                },
                                std::move(*document)));
  });
  in.finish();
  if (line.diagnostics.total() == diagnostics_before && own != stated)
    line.refuse(Rule::kForeignDigest, fmt::format("the text's digest is {}, not {}", own.hex(), stated.hex()));
  return line.diagnostics.total() == diagnostics_before;
}

KnownDocuments::JobText KnownDocuments::decode_job(const JsonCursor& cursor) {
  JobText job;
  if (check_header(cursor, kTransferJobKind)) job_with(*this).read(cursor, job);
  return job;
}

template <class Document>
std::shared_ptr<const Valid<Document>> KnownDocuments::find(const Sha256Digest& digest) {
  const auto found = documents_.find(digest);
  const auto* document =
      found == documents_.end() ? nullptr : std::get_if<std::shared_ptr<const Valid<Document>>>(&found->second);
  if (document != nullptr) return *document;
  miss(fmt::format("no line before it has the {} {}", DocumentCodec<Document>::kSchema, digest.hex()));
  return nullptr;
}

std::shared_ptr<const TransferJob> KnownDocuments::find_job(const Sha256Digest& digest) {
  const auto found = jobs_.find(digest);
  if (found == jobs_.end()) {
    miss(fmt::format("no line before it has the {} {}", kTransferJobKind, digest.hex()));
    return nullptr;
  }
  JobText& text = found->second;
  std::string why;
  if (text.made == nullptr) text.made = make(text, why);
  if (text.made == nullptr) miss(fmt::format("job {} cannot be made again: {}", digest.hex(), why));
  return text.made;
}

std::shared_ptr<const TransferJob> KnownDocuments::make(const JobText& text, std::string& why) const {
  if (!context_) {
    why = "a protocol of this kind has no jobs";
    return nullptr;
  }
  const InstanceBinding* alone = without_peer(text.source_bindings, text.source_peers);
  if (alone == nullptr) alone = without_peer(text.target_bindings, text.target_peers);
  if (alone != nullptr) {
    why = fmt::format("participant '{}' has no peer", alone->participant.text());
    return nullptr;
  }
  const Result<std::shared_ptr<TransferJob>> made =
      KvTransferPlanner(*context_).make_job("job", text.source_bindings, text.target_bindings);
  if (!made.ok()) {
    why = made.status().message();
    return nullptr;
  }
  const std::shared_ptr<TransferJob>& job = made.value();
  // I7: the same documents make the same plan. If not, this program plans differently from the one that recorded, and a
  // replay would compare two different transfers.
  if (const Sha256Digest plan = digest(*kv_plan(job->plan)); plan != text.plan) {
    why = fmt::format("its plan was {}, and the recorded documents make {}", text.plan.hex(), plan.hex());
    return nullptr;
  }
  job->source_peers = text.source_peers;
  job->target_peers = text.target_peers;
  job->checksum = text.checksum;
  return job;
}

#define CROSSDOCK_INSTANTIATE(Document, schema) \
  template std::shared_ptr<const Valid<Document>> KnownDocuments::find<Document>(const Sha256Digest&);
CROSSDOCK_FOR_EACH_DOCUMENT(CROSSDOCK_INSTANTIATE)
#undef CROSSDOCK_INSTANTIATE

}  // namespace crossdock
