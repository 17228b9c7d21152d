// model/wire/describe.h: a description writes what it reads, in canonical text, and refuses what breaks a form's rule.
#include "model/wire/describe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "model/wire/codec.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

using nlohmann::json;

template <class Form, class Value>
std::string written(const Form& form, const Value& value) {
  JsonWriter out;
  form.write(out, value);
  return out.take();
}

// The diagnostics of reading, a line each; empty when there are none.
template <class Form, class Value>
std::string refusals(const Form& form, const std::string& text, Value& value) {
  Diagnostics diagnostics;
  const std::optional<JsonTree> tree = JsonTree::parse(text, JsonLimits(), diagnostics);
  if (!tree) return "no JSON";
  const JsonPath path;
  form.read(JsonCursor{tree->root(), path, diagnostics}, value);
  return diagnostic_lines(diagnostics);
}

// Reads `text`, which is refused for this and nothing else.
template <class Value, class Form>
::testing::AssertionResult is_refused(const Form& form, const std::string& text, const std::string& why) {
  Value value = {};
  const std::string lines = refusals(form, text, value);
  const bool is_one = lines.find('\n') == std::string::npos || lines.find('\n') + 1 == lines.size();
  if (is_one && lines.find(why) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << text << " gave '" << lines << "', not '" << why << "'";
}

enum class Colour { kRed, kGreen };
struct ColourName {
  Colour colour;
  std::string_view name;
};
constexpr std::array kColours = {ColourName{Colour::kGreen, "green"}, ColourName{Colour::kRed, "red"}};
constexpr std::array<std::string_view, 2> kColourNames = {"rouge", "vert"};

struct Circle {
  uint64_t radius = 0;
};
struct Square {
  std::string zone;
};
struct Empty {};

struct Thing {
  Range heads;
  IntervalSet layers;
  Sha256Digest content;
  Colour colour = Colour::kRed;
  Colour shade = Colour::kGreen;
  bool is_open = true;
  std::optional<Circle> inner;
  std::vector<Circle> circles;
  std::map<std::string, std::set<std::string>> verdicts;
  std::map<ParticipantId, ObjectKey> peers;
  std::variant<Empty, Circle, Square> shape;
  ParticipantId name;
  uint32_t checksum = 0;
  Duration wait = Duration::from_ns(5000);
  Duration back;
};

constexpr auto kCircle =
    form::object([](auto& fields, auto& circle) { fields.required("radius", circle.radius, form::number(1)); });

constexpr auto kShape = form::object([](auto& fields, auto& shape) {
  describe_variant(
      fields, shape,
      alternative<Square>("square", [](auto& in, auto& each) { in.required("zone", each.zone, form::kName); }),
      alternative<Empty>("empty", [](auto&, auto&) {}),
      alternative<Circle>("circle", [](auto& in, auto& each) { in.required("area", each.radius, form::number()); }));
});

constexpr auto kThing = form::object([](auto& fields, auto& thing) {
  const Thing usual;
  fields.header("test.thing");
  fields.required("back_ns", thing.back, form::kNanoseconds);
  fields.required("checksum", thing.checksum, form::kUint32);
  fields.given("circles", !thing.circles.empty(), thing.circles, form::list_of(kCircle, 2));
  fields.required("colour", thing.colour, form::choice(kColours, &ColourName::colour));
  fields.required("content", thing.content, form::kDigest);
  fields.required("heads", thing.heads, form::kInterval);
  fields.optional("inner", thing.inner, kCircle);
  fields.usual("is_open", thing.is_open, usual.is_open, form::kBoolean);
  fields.required("layers", thing.layers, form::kIntervals);
  fields.required("name", thing.name, form::kName);
  fields.usual("peers", thing.peers, usual.peers,
               form::pairs_of("participant", form::kName, "peer", form::kString, Rule::kParticipantRepeated));
  fields.usual("shade", thing.shade, usual.shade, form::choice<Colour>(kColourNames));
  fields.required("shape", thing.shape, kShape);
  fields.usual("verdicts", thing.verdicts, usual.verdicts, form::map_of(form::string_or_set_of(form::kString)));
  fields.usual("wait_us", thing.wait, usual.wait, form::kMicroseconds);
});

Thing full_thing() {
  Thing thing;
  thing.heads = Range(2, 9);
  thing.layers = IntervalSet{Range(0, 1), Range(4, 6)};
  thing.content = sha256("content");
  thing.colour = Colour::kGreen;
  thing.shade = Colour::kRed;
  thing.is_open = false;
  thing.inner = Circle{7};
  thing.circles = {Circle{1}, Circle{2}};
  thing.verdicts = {{"b", {"done"}}, {"a", {"done", "aborted"}}};
  thing.peers = {{ParticipantId("p0"), ObjectKey("x")}};
  thing.shape = Circle{3};
  thing.name = ParticipantId("n");
  thing.checksum = 4294967295;
  thing.wait = Duration::from_ns(1000);
  thing.back = Duration::from_ns(-12);
  return thing;
}

json full_json() {
  json peer;
  peer["participant"] = "p0";
  peer["peer"] = "x";
  return json{{"schema", "test.thing"},
              {"version", 1},
              {"back_ns", -12},
              {"checksum", 4294967295},
              {"circles", json::array({{{"radius", 1}}, {{"radius", 2}}})},
              {"colour", "green"},
              {"content", sha256("content").hex()},
              {"heads", {2, 9}},
              {"inner", {{"radius", 7}}},
              {"is_open", false},
              {"layers", json::array({{0, 1}, {4, 6}})},
              {"name", "n"},
              {"peers", json::array({peer})},
              {"shade", "rouge"},
              {"shape", {{"kind", "circle"}, {"area", 3}}},
              {"verdicts", {{"a", {"aborted", "done"}}, {"b", "done"}}},
              {"wait_us", 1}};
}

TEST(Describe, WritesCanonicalTextAndReadsItBack) {
  EXPECT_EQ(written(kThing, full_thing()), full_json().dump());
  Thing again;
  EXPECT_EQ(refusals(kThing, full_json().dump(), again), "");
  EXPECT_EQ(written(kThing, again), full_json().dump());
  EXPECT_EQ(again.back.ns(), -12);
  EXPECT_EQ(again.wait.ns(), 1000);
  EXPECT_EQ(std::get<Circle>(again.shape).radius, 3U);
}

TEST(Describe, LeavesOutWhatIsUsualOrNotGiven) {
  Thing thing = full_thing();
  const Thing usual;
  thing.inner = std::nullopt;
  thing.circles.clear();
  thing.verdicts.clear();
  thing.peers.clear();
  thing.shade = usual.shade;
  thing.is_open = usual.is_open;
  thing.wait = usual.wait;
  json expected = full_json();
  for (const char* name : {"inner", "circles", "verdicts", "peers", "shade", "is_open", "wait_us"})
    expected.erase(name);
  EXPECT_EQ(written(kThing, thing), expected.dump());
  Thing again;
  EXPECT_EQ(refusals(kThing, expected.dump(), again), "");
  EXPECT_EQ(again.wait, usual.wait);
  EXPECT_FALSE(again.inner.has_value());
}

TEST(Describe, MissesEachRequiredFieldAndNoOther) {
  const json full = full_json();
  for (const auto& [name, value] : full.items()) {
    json without = full;
    without.erase(name);
    Thing thing;
    const std::string lines = refusals(kThing, without.dump(), thing);
    const bool is_optional =
        std::set<std::string>{"circles", "inner", "is_open", "peers", "shade", "verdicts", "wait_us"}.contains(name);
    EXPECT_EQ(lines.empty(), is_optional) << name;
    EXPECT_EQ(lines.find("field '" + name + "' is missing") != std::string::npos, !is_optional) << lines;
  }
  json more = full_json();
  more["other"] = 1;
  EXPECT_TRUE(is_refused<Thing>(kThing, more.dump(), "field 'other' is unknown"));
}

TEST(Describe, AKindPutsItsNameAtItsPlaceAndDecidesTheOtherFields) {
  using Shape = decltype(Thing::shape);
  EXPECT_EQ(written(kShape, Shape(Empty())), R"({"kind":"empty"})");
  EXPECT_EQ(written(kShape, Shape(Circle{4})), R"({"area":4,"kind":"circle"})");
  EXPECT_EQ(written(kShape, Shape(Square{"z"})), R"({"kind":"square","zone":"z"})");
  Shape shape;
  EXPECT_EQ(refusals(kShape, R"({"zone":"z","kind":"square"})", shape), "");
  EXPECT_EQ(std::get<Square>(shape).zone, "z");
  EXPECT_TRUE(is_refused<Shape>(kShape, R"({"kind":"empty","zone":"z"})", "field 'zone' is unknown"));
  EXPECT_TRUE(is_refused<Shape>(kShape, R"({"kind":"star"})", "'star' is not one of square, empty, circle"));
  EXPECT_TRUE(is_refused<Shape>(kShape, "{}", "field 'kind' is missing"));
}

TEST(Describe, AnOptionalValueThatIsNotThereIsEmptyWhateverItWas) {
  using Number = std::optional<uint64_t>;
  constexpr OptionalKinds kKinds = {{"some", "none"}, 0};
  const auto behind_kind = form::object(
      [&](auto& fields, auto& value) { describe_optional(fields, kKinds, "value", value, form::number(1)); });
  EXPECT_EQ(written(behind_kind, Number(3)), R"({"kind":"some","value":3})");
  EXPECT_EQ(written(behind_kind, Number()), R"({"kind":"none"})");
  const auto alone = form::object([](auto& fields, auto& value) { fields.optional("value", value, form::number(1)); });
  for (const std::string& absent : {std::string("{}"), std::string(R"({"kind":"none"})")}) {
    Number value = 1;
    EXPECT_EQ(absent == "{}" ? refusals(alone, absent, value) : refusals(behind_kind, absent, value), "");
    EXPECT_FALSE(value.has_value()) << absent;
  }
  Number value;
  EXPECT_EQ(refusals(behind_kind, R"({"kind":"some","value":3})", value), "");
  EXPECT_EQ(value, 3U);
  EXPECT_TRUE(is_refused<Number>(behind_kind, R"({"kind":"none","value":3})", "field 'value' is unknown"));
  EXPECT_TRUE(is_refused<Number>(behind_kind, R"({"kind":"any"})", "'any' is not one of some, none"));
}

TEST(Describe, EachFormRefusesWhatBreaksItsRule) {
  EXPECT_TRUE(is_refused<uint64_t>(form::number(2), "1", "1 is below 2"));
  EXPECT_TRUE(is_refused<uint64_t>(form::number(2), "-1", "-1 is not an integer from 0"));
  EXPECT_TRUE(is_refused<uint32_t>(form::bounded(), "4294967296", "4294967296 is above 4294967295"));
  EXPECT_TRUE(is_refused<uint32_t>(form::bounded(3), "2", "2 is below 3"));
  EXPECT_TRUE(is_refused<uint32_t>(form::kUint32, "4294967296", "is not an integer from 0 to 4294967295"));
  EXPECT_TRUE(is_refused<bool>(form::kBoolean, "1", "must be"));
  EXPECT_TRUE(is_refused<std::string>(form::kString, "1", "must be"));
  EXPECT_TRUE(is_refused<std::string>(form::kName, R"("")", "a name must not be empty"));
  EXPECT_TRUE(is_refused<Range>(form::kInterval, "[3,2]", "ends before it begins"));
  EXPECT_TRUE(is_refused<IntervalSet>(form::kIntervals, "[[0,2],[1,3]]", "overlap"));
  EXPECT_TRUE(is_refused<Duration>(form::kNanoseconds, "1.5", "a time is an integer"));
  EXPECT_TRUE(is_refused<Duration>(form::kMicroseconds, "4503599627370497", "us are more than 4503599627370496"));
  EXPECT_TRUE(
      is_refused<Colour>(form::choice(kColours, &ColourName::colour), R"("blue")", "'blue' is not one of green, red"));
  EXPECT_TRUE(is_refused<std::vector<uint64_t>>(form::list_of(form::number(), 2), "[1,2,3]", "more than 2 entries"));
  const auto pairs = form::pairs_of("k", form::kString, "v", form::kString, Rule::kParticipantRepeated);
  EXPECT_TRUE((is_refused<std::map<std::string, std::string>>(pairs, R"([{"k":"a","v":"1"},{"k":"a","v":"2"}])",
                                                              "'a' is listed twice")));
}

TEST(Describe, ARuleOverSeveralFieldsNamesTheirObject) {
  using Names = std::vector<std::string>;
  const auto one_of_two = form::object([](auto& fields, auto& names) {
    const bool has_a = fields.given("a", names.size() == 1, names, form::list_of(form::kString));
    const bool has_b = fields.given("b", names.size() != 1, names, form::list_of(form::kString));
    fields.check(has_a != has_b, Rule::kFieldMissing, "one of 'a' and 'b'");
  });
  EXPECT_EQ(written(one_of_two, Names{"x"}), R"({"a":["x"]})");
  EXPECT_EQ(written(one_of_two, Names{"x", "y"}), R"({"b":["x","y"]})");
  EXPECT_TRUE(is_refused<Names>(one_of_two, "{}", "one of 'a' and 'b'"));
  EXPECT_TRUE(is_refused<Names>(one_of_two, R"({"a":[],"b":[]})", "one of 'a' and 'b'"));
}

TEST(Describe, ADocumentInsideAnotherHasNoHeader) {
  const CacheSchema schema = *example_cache_schema();
  const std::string text = written(form::kEmbedded, schema);
  json expected = json::parse(to_json(example_cache_schema()));
  expected.erase("schema");
  expected.erase("version");
  EXPECT_EQ(text, expected.dump());
  CacheSchema again;
  EXPECT_EQ(refusals(form::kEmbedded, text, again), "");
  EXPECT_EQ(again, schema);
}

TEST(DescribeDeathTest, FieldsMustBeSorted) {
  const auto unsorted = form::object([](auto& fields, auto& circle) {
    fields.required("b", circle.radius, form::number());
    fields.required("a", circle.radius, form::number());
  });
  EXPECT_DEATH(written(unsorted, Circle{1}), "");
}

}  // namespace
}  // namespace crossdock::testing
