// docs/formats.md shows the rules and an example of each document as the program has them. To bring it up to date, run
// this test with CROSSDOCK_UPDATE_DOCS=1 in the environment.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/plan_json.h"
#include "tests/support/example_documents.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

const std::string kPath = source_path("docs/formats.md");

// Short arrays and objects on one line, long ones indented: canonical JSON is hard to read.
std::string pretty(const nlohmann::json& value, size_t indent) {
  const std::string flat = value.dump();
  if (!value.is_structured() || flat.size() + indent <= 100) return flat;
  const std::string inner(indent + 2, ' ');
  std::string text = value.is_array() ? "[\n" : "{\n";
  size_t left = value.size();
  for (const auto& [key, item] : value.items()) {
    const std::string name = value.is_array() ? "" : nlohmann::json(key).dump() + ": ";
    text += inner + name + pretty(item, indent + 2) + (--left > 0 ? ",\n" : "\n");
  }
  return text + std::string(indent, ' ') + (value.is_array() ? "]" : "}");
}

// The placement's part of the snapshot into the objects of the store layout.
Valid<TransferPlan> example_plan() {
  const AnyDocument source = example_placement();
  const AnyDocument target = example_store_layout();
  PlanOptions options;
  options.snapshot_tokens = example_snapshot()->tokens;
  Diagnostics diagnostics;
  return make_plan(plan_side(source).value(), plan_side(target).value(), options, PlanLimits(), diagnostics).value();
}

std::string example_section(const std::string& title, std::string_view schema, const std::string& text,
                            const Sha256Digest& digest) {
  return "### " + title + " (`" + std::string(schema) + "`)\n\n```json\n" + pretty(nlohmann::json::parse(text), 0) +
         "\n```\n\nDigest: `sha256:" + digest.hex() + "`\n\n";
}

std::string generated_examples() {
  std::string text;
  for (const ExampleDocument& example : example_documents())
    text += example_section(example.title, schema_name(example.document), to_json(example.document),
                            digest(example.document));
  const Valid<TransferPlan> plan = example_plan();
  return text + example_section("Transfer plan", "crossdock.plan", plan_to_json(plan), digest(plan));
}

std::string generated_rules() {
  std::string text = "| rule | what has to hold |\n|---|---|\n";
  for (const RuleInfo& info : rule_table())
    text += "| `" + std::string(info.name) + "` | " + std::string(info.summary) + " |\n";
  return text + "\n";
}

// Replaces what stands between the two marker lines.
std::string with_generated(const std::string& text, const std::string& name, const std::string& generated) {
  const std::string begin_marker = "<!-- generated: " + name + " -->\n";
  const std::string end_marker = "<!-- end of " + name + " -->";
  const size_t begin = text.find(begin_marker);
  const size_t end = text.find(end_marker);
  EXPECT_NE(begin, std::string::npos) << begin_marker;
  EXPECT_NE(end, std::string::npos) << end_marker;
  if (begin == std::string::npos || end == std::string::npos) return text;
  return text.substr(0, begin + begin_marker.size()) + "\n" + generated + text.substr(end);
}

TEST(FormatsDocument, ShowsTheRulesAndExamplesThatTheProgramHas) {
  const Result<std::string> text = read_file(kPath, 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const std::string wanted =
      with_generated(with_generated(text.value(), "examples", generated_examples()), "rules", generated_rules());
  if (std::getenv("CROSSDOCK_UPDATE_DOCS") != nullptr) {
    ASSERT_TRUE(write_file(kPath, wanted).ok());
  }
  const Result<std::string> now = read_file(kPath, 1 << 20);
  EXPECT_TRUE(now.value() == wanted) << "docs/formats.md is out of date: run this test with CROSSDOCK_UPDATE_DOCS=1";
}

TEST(FormatsDocument, EachExampleIsReadBackAsItIs) {
  for (const ExampleDocument& example : example_documents()) {
    SCOPED_TRACE(example.title);
    Diagnostics diagnostics;
    const std::optional<AnyDocument> again = read_any_document(to_json(example.document), JsonLimits(), diagnostics);
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, example.document);
    EXPECT_EQ(digest(*again), digest(example.document));
  }
  Diagnostics diagnostics;
  const std::optional<PlanDocument> plan = read_plan(plan_to_json(example_plan()), JsonLimits(), diagnostics);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->plan, example_plan());
}

}  // namespace
}  // namespace crossdock::testing
