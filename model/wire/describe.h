// One description of a value's JSON serves both directions.
//
//   constexpr auto kReplica = form::object([](auto& fields, auto& replica) {
//     fields.required("count", replica.count, form::number(1));
//     fields.required("ordinal", replica.ordinal, form::number());
//   });
//
// A form says what JSON one value has: read(const JsonCursor&, Value&) takes it, and adds diagnostics where a rule is
// broken; write(JsonWriter&, const Value&) gives its canonical text. A form of an object names its fields to `fields`,
// a FieldReader or a FieldWriter, sorted by name, since they are written in that order. Forms are made of other forms.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/time.h"
#include "model/wire/decode.h"
#include "model/wire/json_writer.h"

namespace crossdock {

inline constexpr uint64_t kWireVersion = 1;  // the field 'version' of every document

// Takes the fields of an object that is read. A field that is refused has the value that its form leaves.
class FieldReader {
 public:
  static constexpr bool kReads = true;

  explicit FieldReader(ObjectReader& in) : in_(in) {}

  // The fields 'schema' and 'version' of a document, which check_header() has found to be right.
  void header(std::string_view) {
    in_.string("schema");
    in_.number("version");
  }
  template <class Value, class Form>
  void required(std::string_view name, Value& value, const Form& form) {
    in_.required(name, [&](const JsonCursor& cursor) { form.read(cursor, value); });
  }
  // Empty where the field is not there. Each of the following returns whether it is.
  template <class Value, class Form>
  bool optional(std::string_view name, std::optional<Value>& value, const Form& form) {
    value.reset();
    return in_.optional(name, [&](const JsonCursor& cursor) { form.read(cursor, value.emplace()); });
  }
  // A field that is not written when it has its usual value, and need not be there.
  template <class Value, class Form>
  bool usual(std::string_view name, Value& value, const Value&, const Form& form) {
    return in_.optional(name, [&](const JsonCursor& cursor) { form.read(cursor, value); });
  }
  // A field that is written only where `is_given`, and need not be there.
  template <class Value, class Form>
  bool given(std::string_view name, bool, Value& value, const Form& form) {
    return in_.optional(name, [&](const JsonCursor& cursor) { form.read(cursor, value); });
  }
  // A field that is never written.
  template <class Value, class Form>
  bool read_only(std::string_view name, Value& value, const Form& form) {
    return in_.optional(name, [&](const JsonCursor& cursor) { form.read(cursor, value); });
  }
  // The field 'kind', which says what other fields there are: an index of `kinds`, or their number when it is refused.
  size_t kind(std::span<const std::string_view> kinds, size_t) {
    size_t kind = kinds.size();
    in_.required("kind", [&](const JsonCursor& cursor) { kind = cursor.choice(kinds).value_or(kinds.size()); });
    return kind;
  }
  // A rule that joins several fields. What is written keeps it.
  void check(bool holds, Rule rule, std::string_view message) {
    if (!holds) in_.cursor().refuse(rule, std::string(message));
  }

 private:
  ObjectReader& in_;
};

// Writes the same fields. What the other functions of FieldReader say holds here too.
class FieldWriter {
 public:
  static constexpr bool kReads = false;

  explicit FieldWriter(JsonWriter& out) : out_(out) { out_.begin_object(); }
  // After the last field.
  void end();

  void header(std::string_view schema);
  template <class Value, class Form>
  void required(std::string_view name, const Value& value, const Form& form) {
    form.write(key(name), value);
  }
  template <class Value, class Form>
  bool optional(std::string_view name, const std::optional<Value>& value, const Form& form) {
    if (value) form.write(key(name), *value);
    return value.has_value();
  }
  template <class Value, class Form>
  bool usual(std::string_view name, const Value& value, const Value& usual, const Form& form) {
    return given(name, value != usual, value, form);
  }
  template <class Value, class Form>
  bool given(std::string_view name, bool is_given, const Value& value, const Form& form) {
    if (is_given) form.write(key(name), value);
    return is_given;
  }
  template <class Value, class Form>
  bool read_only(std::string_view, const Value&, const Form&) {
    return false;
  }
  size_t kind(std::span<const std::string_view> kinds, size_t index);
  // What is written was validated before, so a rule that is broken here is a bug.
  void check(bool holds, Rule, std::string_view) { CHECK(holds); }

 private:
  // A field whose value is known before the fields ahead of it in the text are.
  struct Constant {
    std::string_view name;
    std::string_view text;  // empty: the wire version
  };

  JsonWriter& key(std::string_view name) {
    if (constant_count_ > 0) write_constants_before(name);
    return out_.key(name);
  }
  void write_constants_before(std::string_view name);
  void write_constant();

  JsonWriter& out_;
  std::array<Constant, 3> constants_;  // sorted by name, the next one last
  size_t constant_count_ = 0;
};

// Reads the fields of an object, all of which `describe` names.
template <class Value, class Describe>
void read_fields(const JsonCursor& cursor, Value& value, const Describe& describe) {
  ObjectReader in(cursor);
  FieldReader fields(in);
  describe(fields, value);
  in.finish();
}

template <class Value, class Describe>
void write_fields(JsonWriter& out, const Value& value, const Describe& describe) {
  FieldWriter fields(out);
  describe(fields, value);
  fields.end();
}

// One kind of a variant: its name in the field 'kind', and the description of its fields.
template <class Type, class Describe>
struct Alternative {
  std::string_view name;
  Describe describe;

  template <class Variant>
  bool is_of(const Variant& value) const {
    return std::holds_alternative<Type>(value);
  }
  template <class Fields, class Variant>
  void describe_in(Fields& fields, Variant& value) const {
    if constexpr (Fields::kReads) value.template emplace<Type>();
    describe(fields, std::get<Type>(value));
  }
};
template <class Type, class Describe>
constexpr Alternative<Type, Describe> alternative(std::string_view name, Describe describe) {
  return {name, describe};
}

// The fields of a std::variant that holds one of these alternatives. They are named in this order when another is read.
template <class Fields, class Variant, class... Each>
void describe_variant(Fields& fields, Variant& value, const Each&... each) {
  const std::array<std::string_view, sizeof...(Each)> kinds = {each.name...};
  const std::array<bool, sizeof...(Each)> holds = {each.is_of(value)...};
  size_t held = 0;
  while (held + 1 < holds.size() && !holds[held]) ++held;
  const size_t kind = fields.kind(kinds, held);
  size_t i = 0;
  ((i++ == kind ? each.describe_in(fields, value) : void()), ...);
}

// The value inside, which reading makes: for a field that is required where the optional has a value.
template <class Value>
Value& some(std::optional<Value>& value) {
  return value ? *value : value.emplace();
}
template <class Value>
const Value& some(const std::optional<Value>& value) {
  return *value;
}

// An optional value behind the field 'kind': one of two kinds says that the field `name` holds it, the other that there
// is none, whatever value it had before.
struct OptionalKinds {
  std::array<std::string_view, 2> names;  // in the order in which they are named when another is read
  size_t with;                            // index of the kind that has the value
};
template <class Fields, class Optional, class Form>
void describe_optional(Fields& fields, const OptionalKinds& kinds, std::string_view name, Optional& value,
                       const Form& form) {
  const bool has_value = fields.kind(kinds.names, value ? kinds.with : 1 - kinds.with) == kinds.with;
  if constexpr (Fields::kReads) value.reset();
  if (has_value) fields.required(name, some(value), form);
}

namespace form {

// An unsigned integer of at least `minimum`, or a StrongNumber.
struct Number {
  uint64_t minimum = 0;

  template <class Value>
  void read(const JsonCursor& cursor, Value& value) const {
    static_assert(!std::integral<Value> || std::same_as<Value, uint64_t>, "a smaller type is kUint32 or bounded()");
    value = Value(cursor.number(minimum));
  }
  template <class Value>
  void write(JsonWriter& out, const Value& value) const {
    if constexpr (std::unsigned_integral<Value>)
      out.number(value);
    else
      out.number(value.value());
  }
};
constexpr Number number(uint64_t minimum = 0) { return {minimum}; }

// An integer that has room in its type. A value that is refused stays what it was.
struct Bounded {
  uint64_t minimum = 0;

  template <std::unsigned_integral Value>
  void read(const JsonCursor& cursor, Value& value) const {
    if (const std::optional<uint64_t> read = read_up_to(cursor, std::numeric_limits<Value>::max()))
      value = static_cast<Value>(*read);
  }
  template <std::unsigned_integral Value>
  void write(JsonWriter& out, Value value) const {
    out.number(value);
  }

 private:
  std::optional<uint64_t> read_up_to(const JsonCursor& cursor, uint64_t maximum) const;
};
constexpr Bounded bounded(uint64_t minimum = 0) { return Bounded{minimum}; }

struct Uint32 {
  void read(const JsonCursor& cursor, uint32_t& value) const;
  void write(JsonWriter& out, uint32_t value) const { out.number(value); }
};
inline constexpr Uint32 kUint32;

struct Boolean {
  void read(const JsonCursor& cursor, bool& value) const { value = cursor.boolean(); }
  void write(JsonWriter& out, bool value) const { out.boolean(value); }
};
inline constexpr Boolean kBoolean;

inline const std::string& text_of(const std::string& text) { return text; }
template <class Id>
const std::string& text_of(const Id& id) {
  return id.text();
}

// Any text; a std::string or a StrongName.
struct String {
  template <class Value>
  void read(const JsonCursor& cursor, Value& value) const {
    value = Value(cursor.string());
  }
  template <class Value>
  void write(JsonWriter& out, const Value& value) const {
    out.string(text_of(value));
  }
};
inline constexpr String kString;

// The same under rule "name".
struct Name : String {
  template <class Value>
  void read(const JsonCursor& cursor, Value& value) const {
    value = Value(cursor.name());
  }
};
inline constexpr Name kName;

struct Digest {
  void read(const JsonCursor& cursor, Sha256Digest& value) const { value = cursor.digest(); }
  void write(JsonWriter& out, const Sha256Digest& value) const { out.string(value.hex()); }
};
inline constexpr Digest kDigest;

struct Interval {
  void read(const JsonCursor& cursor, Range& value) const { value = cursor.range(); }
  void write(JsonWriter& out, Range value) const;
};
inline constexpr Interval kInterval;

struct Intervals {
  void read(const JsonCursor& cursor, IntervalSet& value) const { value = cursor.interval_set(); }
  void write(JsonWriter& out, const IntervalSet& value) const;
};
inline constexpr Intervals kIntervals;

// Nanoseconds of a point or a duration: an integer, which may be negative.
struct Nanoseconds {
  template <class Time>
  void read(const JsonCursor& cursor, Time& value) const {
    value = Time::from_ns(read_ns(cursor));
  }
  template <class Time>
  void write(JsonWriter& out, Time value) const {
    write_ns(out, value.ns());
  }

 private:
  static int64_t read_ns(const JsonCursor& cursor);
  static void write_ns(JsonWriter& out, int64_t ns);
};
inline constexpr Nanoseconds kNanoseconds;

// A duration in whole microseconds, at most 2^52. A value that is refused stays what it was.
struct Microseconds {
  void read(const JsonCursor& cursor, Duration& value) const;
  void write(JsonWriter& out, Duration value) const;
};
inline constexpr Microseconds kMicroseconds;

// An enumeration by a table of names.
template <class Enum, size_t kCount>
struct Choice {
  std::array<std::string_view, kCount> names;
  std::array<Enum, kCount> values;

  void read(const JsonCursor& cursor, Enum& value) const {
    if (const std::optional<size_t> index = cursor.choice(names)) value = values[*index];
  }
  void write(JsonWriter& out, const Enum& value) const {
    size_t i = 0;
    while (i < kCount && values[i] != value) ++i;
    CHECK(i < kCount);
    out.string(names[i]);
  }
};
// Of rows with a member `name` and one for the value.
template <class Row, size_t kCount, class Enum>
constexpr Choice<Enum, kCount> choice(const std::array<Row, kCount>& rows, Enum Row::*member) {
  Choice<Enum, kCount> choice = {};
  for (size_t i = 0; i < kCount; ++i) {
    choice.names[i] = rows[i].name;
    choice.values[i] = rows[i].*member;
  }
  return choice;
}
// Of the names of values that count from 0.
template <class Enum, size_t kCount>
constexpr Choice<Enum, kCount> choice(const std::array<std::string_view, kCount>& names) {
  Choice<Enum, kCount> choice = {names, {}};
  for (size_t i = 0; i < kCount; ++i) choice.values[i] = static_cast<Enum>(i);
  return choice;
}

// An object; describe(fields, value) names its fields.
template <class Describe>
struct Object {
  Describe describe;

  template <class Value>
  void read(const JsonCursor& cursor, Value& value) const {
    read_fields(cursor, value, describe);
  }
  template <class Value>
  void write(JsonWriter& out, const Value& value) const {
    write_fields(out, value, describe);
  }
};
template <class Describe>
constexpr Object<Describe> object(Describe describe) {
  return {describe};
}

// An array. A form of elements that have no default value has decode(const JsonCursor&) instead of read().
template <class Form>
struct List {
  Form form;
  size_t count_max = SIZE_MAX;

  template <class Element>
  void read(const JsonCursor& cursor, std::vector<Element>& list) const {
    list.clear();
    // The size is that of values that exist in the tree, so it is bounded by JsonLimits and not by a number in the
    // text.
    if (cursor.value.kind() == JsonKind::kArray) list.reserve(std::min<size_t>(cursor.value.size(), count_max));
    cursor.for_each(
        [&](const JsonCursor& item) { item.path.index < count_max ? read_element(item, list) : refuse_more(cursor); });
  }
  template <class Elements>
  void write(JsonWriter& out, const Elements& list) const {
    out.begin_array();
    for (const auto& element : list) form.write(out, element);
    out.end_array();
  }

 private:
  template <class Element>
  void read_element(const JsonCursor& item, std::vector<Element>& list) const {
    if constexpr (std::is_default_constructible_v<Element>)
      form.read(item, list.emplace_back());
    else
      list.push_back(form.decode(item));
  }
  void refuse_more(const JsonCursor& cursor) const {
    cursor.refuse(Rule::kWorkLimit, "more than " + std::to_string(count_max) + " entries");
  }
};
template <class Form>
constexpr List<Form> list_of(Form form, size_t count_max = SIZE_MAX) {
  return {form, count_max};
}

// One alternative of a variant, which a field of its own says it holds.
template <class Type, class Form>
struct Held {
  Form form;

  template <class Variant>
  void read(const JsonCursor& cursor, Variant& value) const {
    form.read(cursor, value.template emplace<Type>());
  }
  template <class Variant>
  void write(JsonWriter& out, const Variant& value) const {
    form.write(out, std::get<Type>(value));
  }
};
template <class Type, class Form>
constexpr Held<Type, Form> held(Form form) {
  return {form};
}

// An array of values without an order.
template <class Form>
struct Set {
  Form form;

  template <class Element>
  void read(const JsonCursor& cursor, std::set<Element>& set) const {
    cursor.for_each([&](const JsonCursor& item) { insert(item, set); });
  }
  template <class Element>
  void write(JsonWriter& out, const std::set<Element>& set) const {
    out.begin_array();
    for (const Element& element : set) form.write(out, element);
    out.end_array();
  }

 protected:
  template <class Element>
  void insert(const JsonCursor& item, std::set<Element>& set) const {
    Element element;
    form.read(item, element);
    set.insert(std::move(element));
  }
};
template <class Form>
constexpr Set<Form> set_of(Form form) {
  return {form};
}

// The same, where one string may stand for the array of it alone, and is written so.
template <class Form>
struct StringOrSet : Set<Form> {
  template <class Element>
  void read(const JsonCursor& cursor, std::set<Element>& set) const {
    cursor.value.kind() == JsonKind::kString ? this->insert(cursor, set) : Set<Form>::read(cursor, set);
  }
  template <class Element>
  void write(JsonWriter& out, const std::set<Element>& set) const {
    set.size() == 1 ? this->form.write(out, *set.begin()) : Set<Form>::write(out, set);
  }
};
template <class Form>
constexpr StringOrSet<Form> string_or_set_of(Form form) {
  return {{form}};
}

// An object whose fields have names of their own, each with a value of one form.
template <class Form>
struct Map {
  Form form;

  template <class Value>
  void read(const JsonCursor& cursor, std::map<std::string, Value>& map) const {
    if (!cursor.require(JsonKind::kObject)) return;
    for (std::optional<JsonValue> item = cursor.value.first(); item; item = item->next()) {
      const JsonPath path = cursor.path.field(item->key());
      // Keys of one object differ: the reader has refused repeated ones.
      form.read(JsonCursor{*item, path, cursor.diagnostics}, map[std::string(item->key())]);
    }
  }
  template <class Value>
  void write(JsonWriter& out, const std::map<std::string, Value>& map) const {
    out.begin_object();
    for (const auto& [name, value] : map) form.write(out.key(name), value);
    out.end_object();
  }
};
template <class Form>
constexpr Map<Form> map_of(Form form) {
  return {form};
}

// A map as an array of objects with two fields, which are named in sorted order; no key is listed twice.
template <class KeyForm, class ValueForm>
struct Pairs {
  std::string_view key_name;
  KeyForm key_form;
  std::string_view value_name;
  ValueForm value_form;
  Rule repeated;  // the rule that a key's second entry breaks

  template <class Key, class Value>
  void read(const JsonCursor& cursor, std::map<Key, Value>& map) const {
    cursor.for_each([&](const JsonCursor& item) {
      std::pair<Key, Value> entry;
      pair().read(item, entry);
      if (!map.emplace(entry).second) item.refuse(repeated, "'" + text_of(entry.first) + "' is listed twice");
    });
  }
  template <class Key, class Value>
  void write(JsonWriter& out, const std::map<Key, Value>& map) const {
    out.begin_array();
    for (const auto& entry : map) pair().write(out, entry);
    out.end_array();
  }

 private:
  constexpr auto pair() const {
    return object([this](auto& fields, auto& entry) {
      fields.required(key_name, entry.first, key_form);
      fields.required(value_name, entry.second, value_form);
    });
  }
};
template <class KeyForm, class ValueForm>
constexpr Pairs<KeyForm, ValueForm> pairs_of(std::string_view key_name, KeyForm key_form, std::string_view value_name,
                                             ValueForm value_form, Rule repeated) {
  return {key_name, key_form, value_name, value_form, repeated};
}

}  // namespace form
}  // namespace crossdock
