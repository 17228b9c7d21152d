// The JSON writer and the typed reader. Expected texts are what Python's json.dumps(value, sort_keys=True,
// separators=(",", ":")) printed for the same values.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/utf8.h"
#include "model/wire/decode.h"
#include "model/wire/documents.h"
#include "model/wire/json_writer.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

std::string written(std::string_view text) {
  JsonWriter out;
  out.string(text);
  return out.take();
}

TEST(JsonWriter, EscapesStringsAsPythonDoes) {
  EXPECT_EQ(written(""), R"("")");
  EXPECT_EQ(written("plain ~"), R"("plain ~")");
  EXPECT_EQ(written("\"\\/"), R"("\"\\/")");
  EXPECT_EQ(written("\b\f\n\r\t"), R"("\b\f\n\r\t")");
  EXPECT_EQ(written(std::string_view("\x00\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
  EXPECT_EQ(written("\xc3\xa9\xe2\x82\xac"), R"("\u00e9\u20ac")");  // U+00E9, U+20AC
  EXPECT_EQ(written("\xf0\x9f\x98\x80"), R"("\ud83d\ude00")");      // U+1F600
  EXPECT_EQ(written("\xef\xbf\xbf\xf4\x8f\xbf\xbf"), R"("\uffff\udbff\udfff")");
}

TEST(JsonWriter, WritesNestedValuesWithoutSpaces) {
  JsonWriter out;
  out.begin_object();
  out.key("a").begin_array().number(0u).number(UINT64_MAX).boolean(true).null().end_array();
  out.key("b").begin_object().end_object();
  out.key("c").raw("1.5");
  out.end_object();
  EXPECT_EQ(out.take(), R"({"a":[0,18446744073709551615,true,null],"b":{},"c":1.5})");
}

TEST(JsonWriterDeathTest, KeysOutOfOrderAreABug) {
  JsonWriter out;
  out.begin_object().key("b").null();
  EXPECT_DEATH(out.key("a"), "CHECK failed");
  EXPECT_DEATH(out.key("b"), "CHECK failed");
  EXPECT_DEATH(written("\xff"), "CHECK failed");
}

TEST(Utf8, IsCheckedToTheLetterOfRfc3629) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc2\x41", "\xff"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

TEST(JsonTree, KeepsValuesAndTheirOrder) {
  Diagnostics diagnostics;
  const auto tree = JsonTree::parse(R"({"b":[1,"x",null,true,-2,1e4],"a":{}})", JsonLimits(), diagnostics);
  ASSERT_TRUE(tree) << diagnostics.kept()[0].to_line();
  const JsonValue list = *tree->root().find("b");
  EXPECT_EQ(list.size(), 6u);
  std::vector<JsonKind> kinds;
  for (auto item = list.first(); item; item = item->next()) kinds.push_back(item->kind());
  EXPECT_EQ(kinds, (std::vector<JsonKind>{JsonKind::kUnsigned, JsonKind::kString, JsonKind::kNull, JsonKind::kBool,
                                          JsonKind::kOtherNumber, JsonKind::kOtherNumber}));
  EXPECT_EQ(list.first()->as_unsigned(), 1u);
  EXPECT_EQ(list.first()->next()->text(), "x");
  EXPECT_EQ(tree->root().first()->key(), "b");
  EXPECT_FALSE(tree->root().find("c"));
}

TEST(JsonTree, LimitsAreReachedExactly) {
  const auto parses = [](std::string_view text, JsonLimits limits) {
    Diagnostics diagnostics;
    return JsonTree::parse(text, limits, diagnostics).has_value();
  };
  EXPECT_TRUE(parses("[1,2]", {.bytes_max = 5}));
  EXPECT_FALSE(parses("[1,2]", {.bytes_max = 4}));
  EXPECT_TRUE(parses("[[1]]", {.depth_max = 2}));
  EXPECT_FALSE(parses("[[1]]", {.depth_max = 1}));
  EXPECT_TRUE(parses("[1,2]", {.values_max = 3}));
  EXPECT_FALSE(parses("[1,2]", {.values_max = 2}));
}

TEST(JsonTree, ARepeatedFieldIsFoundAmongManyInAnyOrder) {
  std::string text = "{";
  for (int i = 0; i < 5000; ++i) text += "\"k" + std::to_string(i * 7919 % 5000) + "\":0,";
  Diagnostics none;
  EXPECT_TRUE(JsonTree::parse(text + "\"z\":0}", JsonLimits(), none));
  Diagnostics diagnostics;
  EXPECT_FALSE(JsonTree::parse(text + "\"k17\":0}", JsonLimits(), diagnostics));
  EXPECT_EQ(diagnostics.kept()[0].to_line(), "document: field 'k17' is listed twice [field-repeated]");
}

TEST(Documents, OneReadingReportsSeveralDiagnostics) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_document<Topology>(
      R"({"schema":"crossdock.topology","version":1,"participants":[{"id":"","rank":{}},{"id":7}],"sizes":{"dp":0,"x":1}})",
      JsonLimits(), diagnostics));
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : diagnostics.kept()) lines.push_back(diagnostic.to_line());
  EXPECT_EQ(lines,
            (std::vector<std::string>{"document participants[0].id: a name must not be empty [name]",
                                      "document participants[0].rank: field 'cp' is missing [field-missing]",
                                      "document participants[0].rank: field 'dp' is missing [field-missing]",
                                      "document participants[0].rank: field 'ep' is missing [field-missing]",
                                      "document participants[0].rank: field 'pp' is missing [field-missing]",
                                      "document participants[0].rank: field 'tp' is missing [field-missing]",
                                      "document participants[1].id: must be a string, not an integer [field-type]",
                                      "document participants[1]: field 'rank' is missing [field-missing]",
                                      "document sizes: field 'cp' is missing [field-missing]",
                                      "document sizes.dp: 0 is below 1 [field-minimum]",
                                      "document sizes: field 'ep' is missing [field-missing]",
                                      "document sizes: field 'pp' is missing [field-missing]",
                                      "document sizes: field 'tp' is missing [field-missing]",
                                      "document sizes: field 'x' is unknown [field-unknown]"}));
}

TEST(Documents, AnotherKindOfDocumentIsRefusedByName) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_document<Topology>(to_json(example_snapshot()), JsonLimits(), diagnostics));
  EXPECT_EQ(diagnostics.kept()[0].to_line(),
            "document schema: 'crossdock.snapshot' stands where 'crossdock.topology' is needed [schema-name]");
}

TEST(Documents, EachKindHasAnExample) {
  std::set<std::string_view> schemas;
  for (const ExampleDocument& example : example_documents()) schemas.insert(schema_name(example.document));
  const std::span<const std::string_view> all = document_schemas();
  EXPECT_EQ(schemas, std::set<std::string_view>(all.begin(), all.end()));
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(all.size(), std::variant_size_v<AnyDocument>);
}

TEST(Diagnostics, KeepTheFirstAndCountTheRest) {
  Diagnostics diagnostics("document", 2);
  for (int i = 0; i < 5; ++i) diagnostics.add(Rule::kName, "", std::to_string(i));
  EXPECT_EQ(diagnostics.total(), 5u);
  EXPECT_EQ(diagnostics.kept().size(), 2u);
  EXPECT_EQ(diagnostics.to_status().message(), "document: 0 [name] (and 4 more)");
  EXPECT_EQ(diagnostics.to_status().code(), Code::kInvalidArgument);
  Diagnostics all("all");
  all.take(diagnostics);
  EXPECT_EQ(all.total(), 5u);
  EXPECT_EQ(all.kept()[1].to_line(), "document: 1 [name]");
}

TEST(Utf8, WhatATerminalWouldActOnIsEscaped) {
  EXPECT_EQ(printable("caf\xc3\xa9 \xe6\xbc\xa2"), "caf\xc3\xa9 \xe6\xbc\xa2");
  EXPECT_EQ(printable("\xc2\x9b\xe2\x80\xae\xe2\x80\xa8\xef\xbb\xbf"), "\\u{009b}\\u{202e}\\u{2028}\\u{feff}");
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");
}

TEST(Utf8, TextIsShortenedBetweenCharacters) {
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("abcd", 3), "abc...");
  EXPECT_EQ(shorten("a\xc3\xa9\xc3\xa9", 2), "a...");
  EXPECT_EQ(shorten("a\xc3\xa9\xc3\xa9", 3), "a\xc3\xa9...");
  EXPECT_EQ(shorten("\xf0\x9f\x98\x80", 3), "...");
}

TEST(Diagnostics, ControlCharactersAreEscapedInLines) {
  Diagnostics diagnostics("placement 'a\x1b[31m'");
  diagnostics.add(Rule::kName, "part '\n'", "x\x7f");
  EXPECT_EQ(diagnostics.kept()[0].to_line(), R"(placement 'a\x1b[31m' part '\x0a': x\x7f [name])");
}

}  // namespace
}  // namespace crossdock::testing
