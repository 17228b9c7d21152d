// Diagnostics: everything that is wrong with a document, each with the rule it breaks, the place and the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace crossdock {

// One rule, one name, one sentence. docs/formats/rules.md lists them.
enum class Rule {
#define CROSSDOCK_RULE(constant, name, summary) constant,
#include "model/rules.inc"
#undef CROSSDOCK_RULE
};

struct RuleInfo {
  Rule rule;
  std::string_view name;     // stable; for tools
  std::string_view summary;  // what has to hold
};

// In the order of the enumeration.
const std::vector<RuleInfo>& rule_table();
std::string_view rule_name(Rule rule);

struct Diagnostic {
  Rule rule;
  std::string document;  // for example: placement 'decode'
  std::string place;     // for example: part 'p1-t3'; may be empty
  std::string message;   // the rule and the numbers

  // "placement 'decode' part 'p1-t3': heads [6,9) end past head count 8 [head-bounds]"
  std::string to_line() const;
};

// Collects diagnostics of one document. Keeps the first `kept_max` in full and counts the rest.
class Diagnostics {
 public:
  static constexpr size_t kKeptMax = 100;

  explicit Diagnostics(std::string document = "document", size_t kept_max = kKeptMax)
      : document_(std::move(document)), kept_max_(kept_max) {}

  // Names the document once its kind and name are known; later diagnostics carry it.
  void set_document(std::string document) { document_ = std::move(document); }
  const std::string& document() const { return document_; }

  void add(Rule rule, std::string place, std::string message);

  // Adds all of another collection, each with the document it has there.
  void take(const Diagnostics& other);

  bool empty() const { return total_ == 0; }
  uint64_t total() const { return total_; }
  const std::vector<Diagnostic>& kept() const { return kept_; }
  // A caller that makes many messages can stop once none is kept any more.
  bool full() const { return kept_.size() >= kept_max_; }
  bool has(Rule rule) const;

  // The first diagnostic as a status, with how many more there are. Requires at least one.
  Status to_status() const;

 private:
  std::string document_;
  size_t kept_max_;
  uint64_t total_ = 0;
  std::vector<Diagnostic> kept_;
};

}  // namespace crossdock
