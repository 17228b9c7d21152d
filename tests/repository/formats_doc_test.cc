// docs/formats/ has a page for each kind of document, with an example that the program's own reader accepts, and a page
// with the program's table of rules. To bring the generated sections up to date, run this test with
// CROSSDOCK_UPDATE_DOCS=1 in the environment.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "planner/kv/make_plan.h"
#include "planner/kv/plan_json.h"
#include "tests/support/doc_pages.h"
#include "tests/support/example_documents.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

namespace fs = std::filesystem;

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

// "crossdock.placement" -> "docs/formats/placement.md"
std::string page_path(std::string_view schema) {
  return "docs/formats/" + std::string(schema.substr(schema.find('.') + 1)) + ".md";
}

void expect_example(std::string_view schema, const std::string& text, const Sha256Digest& digest) {
  expect_generated(
      page_path(schema), "example",
      "```json\n" + pretty(nlohmann::json::parse(text), 0) + "\n```\n\nDigest: `sha256:" + digest.hex() + "`\n");
}

TEST(FormatsDocument, ShowsTheExamplesThatTheProgramWrites) {
  for (const ExampleDocument& example : example_documents())
    expect_example(schema_name(example.document), to_json(example.document), digest(example.document));
  const Valid<TransferPlan> plan = example_plan();
  expect_example("crossdock.plan", plan_to_json(plan), digest(plan));
}

TEST(FormatsDocument, ShowsTheRulesThatTheProgramHas) {
  std::string text = "| rule | what has to hold |\n|---|---|\n";
  for (const RuleInfo& info : rule_table())
    text += "| `" + std::string(info.name) + "` | " + std::string(info.summary) + " |\n";
  expect_generated("docs/formats/rules.md", "rules", text);
}

// What the program's readers make of a block: the identity that the page has to state. Empty when they refuse it.
std::string digest_of_block(const std::string& block, Diagnostics& diagnostics) {
  if (nlohmann::json::parse(block).at("schema") == "crossdock.plan") {
    const std::optional<PlanDocument> plan = read_plan(block, JsonLimits(), diagnostics);
    return plan ? digest(plan->plan).hex() : std::string();
  }
  const std::optional<AnyDocument> document = read_any_document(block, JsonLimits(), diagnostics);
  return document ? digest(*document).hex() : std::string();
}

TEST(FormatsDocument, EachExampleIsReadFromItsPageAndHasTheStatedDigest) {
  std::set<std::string> schemas = {"crossdock.plan"};
  for (const ExampleDocument& example : example_documents()) schemas.emplace(schema_name(example.document));
  for (const std::string& schema : schemas) {
    SCOPED_TRACE(schema);
    const std::string page = doc_page(page_path(schema));
    const std::vector<std::string> blocks = code_blocks(page, "json");
    EXPECT_FALSE(blocks.empty());
    for (const std::string& block : blocks) {
      EXPECT_EQ(nlohmann::json::parse(block).at("schema"), schema);
      Diagnostics diagnostics;
      const std::string identity = digest_of_block(block, diagnostics);
      EXPECT_FALSE(identity.empty()) << diagnostic_lines(diagnostics);
      EXPECT_NE(page.find("Digest: `sha256:" + identity + "`"), page.npos) << identity;
    }
  }
}

// Each page is about a document with this schema, which its title names, or about something else in this list.
const std::set<std::string> kOtherPages = {"README", "mooncake", "output", "page_keys", "rules"};
// Read from their pages by the tests of their readers: ClusterDocument, ScenarioDocument and Recorder.
const std::set<std::string> kReadElsewhere = {"cluster", "recording", "scenario"};

TEST(FormatsDocument, EachKindOfDocumentHasItsPageAndTheIndexNamesAllPages) {
  std::set<std::string> wanted = kReadElsewhere;
  wanted.insert("plan");
  for (const ExampleDocument& example : example_documents())
    wanted.emplace(schema_name(example.document).substr(std::string_view("crossdock.").size()));
  std::set<std::string> found;
  const std::string index = doc_page("docs/formats/README.md");
  for (const fs::directory_entry& entry : fs::directory_iterator(source_path("docs/formats"))) {
    const std::string name = entry.path().stem();
    if (name != "README") {
      EXPECT_NE(index.find("[" + name + "](" + name + ".md)"), index.npos) << name << " is not in the index";
    }
    if (kOtherPages.contains(name)) continue;
    found.insert(name);
    const std::string first_line = "(`crossdock." + name + "`)\n";
    const std::string page = doc_page("docs/formats/" + name + ".md");
    EXPECT_EQ(page.find(first_line) + first_line.size(), page.find('\n') + 1) << name;
  }
  EXPECT_EQ(found, wanted);
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
