// Wrong usage, bad documents and hostile names: each is named on one line, nothing is lost, the exit code is 2.
#include <functional>
#include <regex>

#include "tests/cli/run_program.h"

namespace crossdock::testing {
namespace {

// --- usage

TEST_F(Cli, WrongUsageIsNamedAndExitsWithTwo) {
  struct Usage {
    std::vector<std::string> arguments;
    std::string named;
  };
  const std::vector<Usage> table = {
      {{"validate", "--frobnicate", "in.json"}, "not expected: --frobnicate"},
      {{"--frobnicate", "validate", "in.json"}, "not expected: --frobnicate"},
      {{"validate"}, "files is required"},
      {{"inspect"}, "files is required"},
      {{"digest"}, "files is required"},
      {{"inspect", "in.json", "--rows"}, "--rows: "},
      {{"convert", "--from", "mooncake"}, "file is required"},
      {{"convert", "--from", "tapir", "in.json"}, "--from: tapir not in {mooncake}"},
      {{"convert", "--from", "mooncake", "in.json", "--placement", ""}, "--placement: must not be empty"},
      {{"completion"}, "shell is required"},
      {{"completion", "tcsh"}, "tcsh not in {bash,zsh,fish}"},
      {{"schema", "--config"}, "--config: "},
      {{"schema", "--config", ""}, "--config: must not be empty"},
      {{"schema", "--config", kLlama, "-o", ""}, "--output: must not be empty"},
      {{"schema", "--config", kLlama, "extra.json"}, "not expected: extra.json"},
      {{"placement", "--config", kLlama, "--frobnicate=3"}, "not expected: --frobnicate=3"},
      {{"placement", "--config", kLlama, "--tp"}, "--tp: "},
      {{"placement", "--config", kLlama, "--tp", "2", "--tp", "4"}, "--tp: "},
      {{"placement", "--config", kLlama, "--engine", "steam"}, "--engine: steam not in {vllm,sglang}"},
      {{"placement", "--config", kLlama, "--page-size", "16", "--axis-order", "hdn"}, "hdn not in {nhd,hnd}"},
      {{"placement", "--config", kLlama, "--resource", ""}, "--resource: must not be empty"},
  };
  for (const Usage& usage : table) {
    SCOPED_TRACE(json(usage.arguments).dump());
    const std::string& first = usage.arguments.front();
    const std::string command = first.starts_with("-") ? usage.arguments[1] : first;
    const std::string error = refusal_of(usage.arguments);
    EXPECT_TRUE(error.starts_with("crossdock: error: ")) << error;
    EXPECT_NE(error.find(usage.named), std::string::npos) << error;
    EXPECT_TRUE(error.ends_with(" ('crossdock " + command + " --help' shows how it is used)\n")) << error;
    EXPECT_EQ(lines_of(error).size(), 1u) << error;
  }
  EXPECT_EQ(refusal_of({"--frobnicate"}),
            "crossdock: error: The following argument was not expected: --frobnicate ('crossdock --help' shows how it "
            "is used)\n");
}

TEST_F(Cli, OptionsThatDoNotGoTogetherAreRefused) {
  write_examples();
  struct Usage {
    std::vector<std::string> arguments;
    std::string error;
  };
  const std::string no_model = "give either --config FILE or --schema FILE as the model";
  const std::string of_config =
      "--kv-dtype, --mamba-cache-dtype, --mamba-ssm-cache-dtype and --kv-scales need --config: a cache schema states "
      "its dtypes";
  const std::string of_drafts =
      "--draft-layers with --schema needs --layer-count: layers from that number on are draft layers";
  const std::string no_direction = "give either --from FORMAT or --to FORMAT";
  const std::vector<Usage> table = {
      {{"schema"}, no_model},
      {{"placement", "--tp", "8"}, no_model},
      {{"schema", "--config", kLlama, "--schema", "cache_schema.json"}, no_model},
      {{"schema", "--schema", "cache_schema.json", "--kv-scales"}, of_config},
      {{"schema", "--schema", "cache_schema.json", "--kv-dtype", "float16"}, of_config},
      {{"placement", "--schema", "cache_schema.json", "--draft-layers"}, of_drafts},
      {{"placement", "--config", kLlama, "--layer-count", "80"},
       "--layer-count needs --schema: a config states its layer count"},
      {{"placement", "--config", kLlama, "--axis-order", "hnd"}, "--axis-order needs --page-size"},
      {{"convert", "placement.json"}, no_direction},
      {{"convert", "--from", "mooncake", "--to", "mooncake", "placement.json"}, no_direction},
  };
  for (const Usage& usage : table) {
    SCOPED_TRACE(json(usage.arguments).dump());
    EXPECT_EQ(refusal_of(usage.arguments), "crossdock: error: " + usage.error + "\n");
  }
}

TEST_F(Cli, AnUnknownCommandIsComparedWithTheKnown) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"validte", "validate"}, {"Validate", "validate"}, {"inspct", "inspect"},       {"digset", "digest"},
      {"konvert", "convert"},  {"scheema", "schema"},    {"placements", "placement"}, {"completon", "completion"}};
  for (const auto& [word, known] : table)
    EXPECT_EQ(refusal_of({word}), "crossdock: error: unknown command '" + word + "'; did you mean '" + known + "'?\n");
  EXPECT_EQ(refusal_of({"-v", "validte", "in.json", "--json"}),
            "crossdock: error: unknown command 'validte'; did you mean 'validate'?\n");
  for (const std::string word : {"frobnicate", "", "valid"})
    EXPECT_EQ(refusal_of({word}),
              "crossdock: error: unknown command '" + word + "'; 'crossdock --help' lists the commands\n");
}

TEST_F(Cli, NumbersAreDecimalAndWithinTheirRange) {
  write_examples();
  struct Option {
    std::string name;
    std::string minimum;
    std::string maximum;
    std::string above;
  };
  const std::string last = "18446744073709551615";
  const std::string too_long = "18446744073709551616";
  const std::vector<Option> table = {
      {"--tp", "1", "131072", "131073"},
      {"--pp", "1", "131072", "131073"},
      {"--dp", "1", "131072", "131073"},
      {"--cp", "1", "131072", "131073"},
      {"--cp-block", "1", "4294967296", "4294967297"},
      {"--page-size", "1", "4294967296", "4294967297"},
      {"--layer-count", "1", last, too_long},
      {"--rows", "1", last, too_long},
  };
  for (const Option& option : table) {
    for (const std::string& text :
         {std::string("-1"), std::string("0"), std::string("010"), std::string("0x10"), std::string(""),
          std::string(" 1"), std::string("+1"), std::string("1.0"), std::string("1e1"), std::string("1_000"),
          std::string("two"), option.above, too_long}) {
      SCOPED_TRACE(option.name + " '" + text + "'");
      const bool is_rows = option.name == "--rows";
      const std::vector<std::string> arguments =
          is_rows ? std::vector<std::string>{"inspect", "placement.json", option.name, text}
                  : std::vector<std::string>{"placement", "--schema", "cache_schema.json", option.name, text};
      EXPECT_EQ(refusal_of(arguments), "crossdock: error: " + option.name + ": '" + text + "' is not an integer from " +
                                           option.minimum + " to " + option.maximum + " ('crossdock " + arguments[0] +
                                           " --help' shows how it is used)\n");
    }
  }
  output_of({"inspect", "placement.json", "--rows", last});
  output_of({"placement", "--config", kLlama, "--page-size", "4294967296", "--cp", "2", "--cp-block", "4294967296"});
}

TEST_F(Cli, ListsOfNumbersMissNone) {
  for (const std::string option : {"--pp-layers", "--heads"}) {
    for (const std::string text : {"", ",", "4,,4", ",4,4", "4,4,", "-1,9", "4 4", "4, 4", "04,4", "0x4,4", "4;4",
                                   "all", "4,18446744073709551616"}) {
      SCOPED_TRACE(option + " '" + text + "'");
      EXPECT_EQ(refusal_of({"placement", "--config", kLlama, "--tp", "2", "--pp", "2", option, text}),
                "crossdock: error: " + option + ": '" + text +
                    "' is not a list of integers like 2,2,1,1 ('crossdock placement --help' shows how it is used)\n");
    }
  }
}

// --- hostile names

// Escape, C1, a change of direction; as JSON has it, and as it is shown.
const std::string kHostile = "\x1b[31m\xc2\x9b\xe2\x80\xae";
const std::string kHostileJson = "\\u001b[31m\\u009b\\u202e";
const std::string kHostileShown = "\\x1b[31m\\u{009b}\\u{202e}";

TEST_F(Cli, ControlCharactersInADocumentAreEscaped) {
  json placement = json::parse(to_json(example_placement()));
  placement["name"] = "red\x1b[31m\nline";
  placement["topology"]["participants"][0]["id"] = "p0\ttab";
  placement["parts"][0]["participant"] = "p0\ttab";
  write("in.json", placement.dump());
  const std::string shown = output_of({"inspect", "in.json"});
  EXPECT_TRUE(is_plain(shown)) << shown;
  EXPECT_TRUE(shown.starts_with("placement 'red\\x1b[31m\\x0aline': ")) << shown;
  EXPECT_NE(shown.find("\np0\\x09tab "), std::string::npos) << shown;

  placement["parts"][1]["owns"] = json::array();
  placement["parts\r"] = 1;
  write("in.json", placement.dump());
  const Ended result = run({"validate", "in.json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(is_plain(result.out)) << result.out;
  EXPECT_NE(result.out.find("field 'parts\\x0d' is unknown"), std::string::npos) << result.out;
}

TEST_F(Cli, NoNameInADocumentControlsTheTerminal) {
  // Of the example documents; changed wherever they stand, so that the documents stay valid.
  const std::vector<std::string> names = {
      "decode",   "kv:request-17", "p0-t0",   "move-17",         "decode-worker-0",      "gpu0",
      "cuda",     "pool",          "10.0.0.", "request-17/full", "support-bot",          "team-a",
      "example/", "main",          "rope-",   "by-head",         "tokens-of-request-17", "full-h0"};
  write_examples();
  for (const std::string& file : files()) {
    SCOPED_TRACE(file);
    std::string text = read(file);
    if (file == "cache_schema.json") {
      text = std::regex_replace(text, std::regex("recurrent_state|plain"), "$&" + kHostileJson);
    } else {
      for (const std::string& name : names)
        text = std::regex_replace(text, std::regex("\"" + name), "$&" + kHostileJson);
    }
    write("in.json", text);
    const std::string shown = output_of({"inspect", "in.json"});
    EXPECT_TRUE(is_plain(shown)) << shown;
    EXPECT_NE(shown.find(kHostileShown), std::string::npos) << shown;
    EXPECT_TRUE(is_plain(output_of({"inspect", "in.json", "--json"})));
    EXPECT_TRUE(is_plain(output_of({"validate", "in.json"})));

    json wrong = json::parse(text);
    wrong["colour" + kHostile] = 1;
    write("in.json", wrong.dump());
    const Ended faults = run({"validate", "in.json"});
    EXPECT_EQ(faults.exit_code, 2);
    EXPECT_TRUE(is_plain(faults.out)) << faults.out;
    EXPECT_NE(faults.out.find("field 'colour" + kHostileShown + "' is unknown"), std::string::npos) << faults.out;
    EXPECT_TRUE(is_plain(refusal_of({"digest", "in.json"})));
    fs::remove(work("in.json"));
  }
}

TEST_F(Cli, NoArgumentControlsTheTerminal) {
  write_examples();
  const std::string name = "a\n" + kHostile + "\xff";
  const std::string shown = "a\\x0a" + kHostileShown + "\\xff";
  fs::copy(work("placement.json"), work(name));
  const std::vector<std::vector<std::string>> table = {
      {"validate", name},
      {"validate", "none/" + name},
      {"validate", name, "--json"},
      {"digest", name},
      {"digest", name, "--json"},
      {"inspect", "none/" + name},
      {"-v", "validate", name},
      {"-v", "digest", name},
      {"convert", "--from", "mooncake", name},
      {"convert", "--from", "mooncake", "--placement", "none/" + name, kGolden + "snapshot.json"},
      {"placement", "--config", "none/" + name},
      {"placement", "--config", kLlama, "-o", "out.json", "--name", name},
      {"placement", "--config", kLlama, "-o", "b" + name},
      {"placement", "--config", kLlama, "--tp", name},
      {"placement", "--config", kLlama, "--heads", name},
      {"placement", "--config", kLlama, "--engine", name},
      {"placement", "--config", kLlama, "--kv-dtype", name},
      {"placement", "--config", kLlama, "--" + name},
      {"schema", "--config", kLlama, "-o", "none/" + name},
      {"schema", "--config", kLlama, name},
      {"completion", name},
      {"convert", "--to", name, "in.json"},
      {name},
      {"--" + name},
  };
  for (const std::vector<std::string>& arguments : table) {
    const Ended result = run(arguments);
    const std::string text = result.out + result.err;
    EXPECT_TRUE(is_plain(text)) << text;
    std::string unescaped = std::regex_replace(text, std::regex(R"(\\\\)"), R"(\)");  // of JSON
    // An end of line in a usage error is a space.
    unescaped = std::regex_replace(unescaped, std::regex(R"(a \\x1b)"), R"(a\x0a\x1b)");
    EXPECT_NE(unescaped.find(shown), std::string::npos) << text;
  }
}

// The characters with the property Bidi_Control (Unicode Standard Annex 9, 2).
TEST_F(Cli, NoCharacterChangesTheDirectionOfWriting) {
  for (const std::string control : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                                    "\u2066", "\u2067", "\u2068", "\u2069"})
    EXPECT_TRUE(is_plain(refusal_of({"digest", control + ".json"}))) << json(control).dump(-1, ' ', true);
}

TEST_F(Cli, OtherCharactersAreShownAsTheyAre) {
  const std::string name = "p\u00fcr \u00e9t\u00e9 \u6771\u4eac \U0001f680.json";
  write(name, to_json(example_topology()));
  EXPECT_TRUE(output_of({"validate", name}).starts_with(name + ": valid topology, "));
  EXPECT_TRUE(output_of({"digest", name}).ends_with("  " + name + "\n"));
  EXPECT_EQ(refusal_of({"digest", "no " + name}),
            "crossdock: error: cannot open 'no " + name + "': No such file or directory\n");
}

TEST_F(Cli, JsonHasThePathItself) {
  for (const std::string& name : {std::string("a\n") + kHostile + ".json", std::string("p\u00fcr \"1\".json")}) {
    write(name, to_json(example_topology()));
    EXPECT_EQ(json::parse(output_of({"validate", "--json", name}))["files"][0]["path"], name);
    EXPECT_EQ(json::parse(output_of({"digest", "--json", name}))[0]["path"], name);
  }
}

TEST_F(Cli, AFileNameThatIsNotUtf8IsNoProblem) {
  write("a\xff.json", to_json(example_topology()));
  for (const std::string command : {"validate", "digest", "inspect"}) {
    EXPECT_TRUE(is_plain(output_of({command, "a\xff.json"}))) << command;
    EXPECT_TRUE(json::accept(output_of({command, "--json", "a\xff.json"}))) << command;
  }
  EXPECT_EQ(json::parse(output_of({"validate", "--json", "a\xff.json"}))["files"][0]["path"], "a\\xff.json");
  EXPECT_EQ(json::parse(output_of({"digest", "--json", "a\xff.json"}))[0]["path"], "a\\xff.json");
}

// --- bad input

struct BadInput {
  std::string line;  // what one line of the output begins with or, after "...", ends with
  std::vector<std::string> arguments;
  std::string text = {};  // of the file in.json
};

using Mutate = std::function<void(json&)>;

template <class Document>
std::string mutated(const Valid<Document>& document, const Mutate& mutate) {
  json value = json::parse(to_json(document));
  mutate(value);
  return value.dump();
}

std::string config_with(const Mutate& mutate) {
  json config = json::parse(read_text(kLlama));
  mutate(config);
  return config.dump();
}

const std::vector<std::string> kValidate = {"validate", "in.json"};
const std::vector<std::string> kSchema = {"schema", "--config", "in.json"};

std::vector<BadInput> bad_texts() {
  const std::string topology = to_json(example_topology());
  const auto with_version = [](const std::string& value) {
    return R"({"schema":"crossdock.topology","version":)" + value + "}";
  };
  const auto at = [](size_t line, size_t column) {
    return "in.json: document: line " + std::to_string(line) + ", column " + std::to_string(column) +
           ": syntax error while parsing ";
  };
  const size_t value = with_version("").size();  // the column of the first character of the version
  return {
      {at(1, 1), kValidate, ""},
      {at(2, 1), kValidate, " \n"},
      {at(2, 13), kValidate, "{\n  \"schema\": x}"},
      {at(1, topology.size()), kValidate, topology.substr(0, topology.size() - 1)},
      {at(1, topology.size() + 1), kValidate, topology + "}"},
      {at(1, topology.size() + 1), kValidate, topology + topology},
      {at(1, value), kValidate, with_version("NaN")},
      {at(1, value + 2), kValidate, with_version("1 // one\n")},
      {at(1, value + 2), kValidate, with_version("1,")},
      {at(1, value + 1), kValidate, with_version("01")},
      {at(1, value + 1), kValidate, with_version("0x1")},
      {at(1, value), kValidate, with_version("+1")},
      {at(1, value), kValidate, with_version("'1'")},
      {at(1, value + 2), kValidate, with_version("\"\xc3\"")},
      {at(1, value + 7), kValidate, with_version("\"\\ud800\"")},
      {"...number overflow parsing '1e400' [json-syntax]", kValidate, with_version("1e400")},
      {"in.json: document: byte 1 of 64 is NUL [json-syntax]", kValidate, std::string(64, '\0')},
      {"in.json: document: line 1, column 1: a byte order mark [json-syntax]", kValidate, "\xef\xbb\xbf" + topology},
      {"in.json: config: line 1, column 1: a byte order mark [json-syntax]", kSchema, "\xef\xbb\xbf{}"},
      {"in.json: document version: -0 is not an integer from 0 to 18446744073709551615 [field-integer]", kValidate,
       with_version("-0")},
      {"in.json: document version: -0.0 is not an integer from 0 to 18446744073709551615 [field-integer]", kValidate,
       with_version("-0.0")},
      {"in.json: document: must be an object, not an array [field-type]", kValidate, "[" + topology + "]"},
      {"in.json: document: must be an object, not null [field-type]", kValidate, "null"},
      {"...: nested deeper than the limit of 32 [json-depth]", kValidate, std::string(1000000, '[')},
      {"in.json: document: field 'version' is listed twice [field-repeated]", kValidate,
       with_version(R"(1,"version":1)")},
      {"in.json: document: field 'schema' is listed twice [field-repeated]", kValidate,
       with_version(R"(1,"\u0073chema":"crossdock.topology")")},
      {"in.json: document version: -1 is not an integer from 0 to 18446744073709551615 [field-integer]", kValidate,
       with_version("-1")},
      {"in.json: document version: 1.5 is not an integer from 0 to 18446744073709551615 [field-integer]", kValidate,
       with_version("1.5")},
      {"in.json: document version: 1e0 is not an integer from 0 to 18446744073709551615 [field-integer]", kValidate,
       with_version("1e0")},
      {"in.json: document version: 18446744073709551616 is not an integer from 0 to 18446744073709551615 "
       "[field-integer]",
       kValidate, with_version("18446744073709551616")},
      {"in.json: document version: must be an integer, not a boolean [field-type]", kValidate, with_version("true")},
      {"in.json: document version: must be an integer, not a string [field-type]", kValidate, with_version("\"1\"")},
      {"in.json: document version: must be an integer, not null [field-type]", kValidate, with_version("null")},
      {"in.json: document version: version 2 of 'crossdock.topology' is unknown; this program reads version 1 "
       "[schema-version]",
       kValidate, with_version("2")},
      {"in.json: document schema: 'crossdock.receipt' is not one of crossdock.binding, ", kValidate,
       R"({"schema":"crossdock.receipt","version":1})"},
      {"in.json: document: field 'schema' is missing [field-missing]", kValidate, "{}"},
  };
}

std::vector<BadInput> bad_placements() {
  const auto placement = [](const Mutate& mutate) { return mutated(example_placement(), mutate); };
  const std::string decode = "in.json: placement 'decode' ";
  return {
      {"...topology.participants[0]: field 'colour' is unknown [field-unknown]", kValidate,
       placement([](json& d) { d["topology"]["participants"][0]["colour"] = "red"; })},
      {"...parts[1]: field 'participant' is missing [field-missing]", kValidate,
       placement([](json& d) { d["parts"][1].erase("participant"); })},
      {"...parts[0].owns[0].heads[0]: interval [1,0) ends before it begins [intervals]", kValidate,
       placement([](json& d) {
         d["parts"][0]["owns"][0]["heads"] = {{1, 0}};
       })},
      {"...resource: a name must not be empty [name]", kValidate, placement([](json& d) { d["resource"] = ""; })},
      {"...participant 'p0-t1': tp rank 2 is not below the tp size 2 [rank-bounds]", kValidate,
       placement([](json& d) { d["topology"]["participants"][1]["rank"]["tp"] = 2; })},
      {"in.json: placement 'decode': participant 'p1-t1' has no part [part-missing]", kValidate,
       placement([](json& d) { d["parts"].erase(3); })},
      {decode + "dp 0: layers 0-1 component key heads [1,2): no owner [coverage-gap]", kValidate,
       placement([](json& d) { d["parts"][1]["owns"] = json::array(); })},
      {decode + "dp 0: layers 0-1 component key heads [0,1): 'p0-t0' (0 of 1), 'p0-t1' (0 of 1) own the same, and are "
                "not declared replicas [coverage-overlap]",
       kValidate, placement([](json& d) {
         d["parts"][1]["owns"][0]["heads"] = {{0, 2}};
       })},
      {decode + "dp 0: layers 0-1 component key heads [0,1): 'p0-t0' (0 of 2) do not make the set of replicas 0 to 1 "
                "[replica-set]",
       kValidate, placement([](json& d) { d["parts"][0]["owns"][0]["replica"]["count"] = 2; })},
      {decode + "part 'p0-t1': heads [1,3) end past head count 2 (component key, layers 0-1) [head-bounds]", kValidate,
       placement([](json& d) {
         d["parts"][1]["owns"][0]["heads"] = {{1, 3}};
       })},
      {decode + "part 'p0-t0': layers 7 are not in the cache schema (layers 0-3) [layer-unknown]", kValidate,
       placement([](json& d) {
         d["parts"][0]["owns"][0]["layers"] = {{0, 2}, {7, 8}};
       })},
      {decode + "part 'p0-t0': layers 0-1 have no component 'latent' [component-unknown]", kValidate,
       placement([](json& d) { d["parts"][0]["owns"][0]["components"] = {"latent"}; })},
  };
}

std::vector<BadInput> bad_views() {
  const auto binding = [](const Mutate& mutate) { return mutated(example_binding(), mutate); };
  const auto manifest = [](const Mutate& mutate) { return mutated(example_store_manifest(), mutate); };
  const std::string zeros(64, '0');
  return {
      {"...region 'pool': 1024 bytes are more than the 1000 that device 'gpu0' can register; split the region "
       "[registration-limit]",
       kValidate, binding([](json& d) { d["devices"][0]["registration_bytes_max"] = 1000; })},
      {"...region 'pool': 1024 bytes from address 18446744073709551615 end past 2^64 [size-overflow]", kValidate,
       binding([](json& d) { d["regions"][0]["address"] = UINT64_MAX; })},
      {"...page table 'pages': slot 5 holds two pages [page-slots]", kValidate, binding([](json& d) {
         d["page_tables"][0]["slots"] = {5, 0, 5};
       })},
      {"...placement_digest: 'sha256:12' is not 64 lower-case hexadecimal digits (and nothing before them) "
       "[digest-text]",
       kValidate, binding([](json& d) { d["placement_digest"] = "sha256:12"; })},
      {"...the view ends at byte 516, region 'request-17/rest' at 512 [view-bounds]", kValidate,
       manifest([](json& d) { d["views"][3]["offset_bytes"] = 388; })},
      {"...head stride 60 is shorter than the 64 bytes of the dim inside it [view-strides]", kValidate,
       manifest([](json& d) { d["views"][3]["stride_bytes"]["head"] = 60; })},
      {"...view 4 (component value, layers 0-1, tokens [0,10), heads [0,2)): shares bytes of region 'request-17/full' "
       "with view 0 (component key, layers 0-1, tokens [0,10), heads [0,2)) [views-overlap]",
       kValidate, manifest([](json& d) { d["views"][4]["offset_bytes"] = 8; })},
      {"in.json: store manifest of 'kv:request-17' snapshot: cache_schema_digest " + zeros +
           " is not that of the manifest's cache schema (897d367453440780",
       kValidate, manifest([&](json& d) { d["snapshot"]["cache_schema_digest"] = zeros; })},
  };
}

std::vector<BadInput> bad_models() {
  const std::string llama = "in.json: model config 'LlamaForCausalLM' ";
  const auto split = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"placement", "--config", kLlama});
    return arguments;
  };
  const std::string refused = "crossdock: error: placement 'placement': ";
  return {
      {"in.json: model config architectures: 'AbacusForCausalLM' is not known; 8 of 78 known: ", kSchema,
       config_with([](json& c) { c["architectures"] = {"AbacusForCausalLM"}; })},
      {"in.json: model config architectures: is missing; 8 of 78 known: ", kSchema, "{}"},
      {llama + "num_hidden_layers: is missing; LlamaForCausalLM needs it [config-field]", kSchema,
       config_with([](json& c) { c.erase("num_hidden_layers"); })},
      {llama + "num_hidden_layers: -80 is not an integer from 0 to 18446744073709551615 [field-integer]", kSchema,
       config_with([](json& c) { c["num_hidden_layers"] = -80; })},
      {llama + "num_hidden_layers: 9223372036854775808 layers, more than the limit of 100000 [config-field]", kSchema,
       config_with([](json& c) { c["num_hidden_layers"] = uint64_t{1} << 63; })},
      {llama + "num_key_value_heads: 3 does not divide num_attention_heads 64 [config-field]", kSchema,
       config_with([](json& c) { c["num_key_value_heads"] = 3; })},
      {llama + "torch_dtype: 'float31' is none of bfloat16, float16 and float32 [config-field]", kSchema,
       config_with([](json& c) { c["torch_dtype"] = "float31"; })},
      {"...: 64 heads x 9223372036854775808 x 2 bytes do not fit in 64 bits [size-overflow]", kSchema,
       config_with([](json& c) {
         c["num_key_value_heads"] = 64;
         c["head_dim"] = uint64_t{1} << 63;
       })},
      {"...option kv_scales: needs an fp8 cache, not bfloat16 [config-field]",
       {"schema", "--config", kLlama, "--kv-scales"}},
      {refused + "8 heads (component key) cannot be shared out over tp 3: neither divides the other; ",
       split({"--tp", "3"})},
      {refused + "the stages have 41+40 layers together, the model has 80 [partition]",
       split({"--pp", "2", "--pp-layers", "41,40"})},
      {refused + "1 stages are given layers, but pp is 2 [partition]", split({"--pp", "2", "--pp-layers", "80"})},
      {refused + "dp 1024 x pp 1024 x tp 1024 x cp 1 are more than 131072 participants [partition]",
       split({"--dp", "1024", "--pp", "1024", "--tp", "1024"})},
      {refused + "resource must have 1 to 256 bytes of UTF-8 [name]", split({"--resource", std::string(257, 'x')})},
      {refused + "resource must have 1 to 256 bytes of UTF-8 [name]", split({"--resource", "kv\xff"})},
  };
}

std::vector<BadInput> bad_conversions() {
  const auto from = [](const std::string& name) {
    return std::vector<std::string>{"convert", "--from", "mooncake", kGolden + name};
  };
  return {
      {"...placement_digest: the content gives f10271271ddd7fc32f812379c43567405c4b05dafdb7a34d1917d202b90a2bc9 "
       "[foreign-digest]",
       from("bad_digest.json")},
      {"...dp 0: layers 0-1 component key heads [3,4): no owner [coverage-gap]", from("bad_head_gap.json")},
      {"...parts[0].layer_ids: layer 1 is listed twice [layer-repeated]", from("bad_layer_twice.json")},
      {"...descriptor.layout: must be 'nhd' [field-choice]", from("bad_layout.json")},
      {"crossdock: error: a snapshot names other documents by digest: give --placement", from("snapshot.json")},
      {"crossdock: error: a binding names other documents by digest: give --placement and --snapshot",
       from("binding.json")},
      {"crossdock: error: 'in.json' is already a Crossdock document",
       {"convert", "--from", "mooncake", "in.json"},
       to_json(example_topology())},
      {"crossdock: error: 'in.json' is already a Crossdock document",
       {"convert", "--from", "mooncake", "in.json"},
       to_json(example_placement())},
      {"crossdock: error: 'in.json' is not a Mooncake placement, snapshot or resolved binding",
       {"convert", "--from", "mooncake", "in.json"},
       R"({"schema":"turtle"})"},
      {"crossdock: error: Mooncake has no document for a crossdock.topology",
       {"convert", "--to", "mooncake", "in.json"},
       to_json(example_topology())},
      {"in.json: placement 'decode' cache_schema: 3 layer groups, must be one [foreign-form]",
       {"convert", "--to", "mooncake", "in.json"},
       to_json(example_placement())},
  };
}

std::vector<BadInput> bad_files() {
  return {
      {"none.json: cannot open 'none.json': No such file or directory", {"validate", "none.json"}},
      {".: cannot read '.': Is a directory", {"validate", "."}},
      {"crossdock: error: cannot open 'none.json': No such file or directory", {"schema", "--config", "none.json"}},
      {"crossdock: error: cannot open '': No such file or directory", {"inspect", ""}},
      {"crossdock: error: cannot read '.': Is a directory", {"digest", "."}},
      {"crossdock: error: cannot read '.': Is a directory", {"placement", "--schema", "."}},
      {"in.json: document schema: 'crossdock.snapshot' stands where 'crossdock.cache_schema' is needed [schema-name]",
       {"placement", "--schema", "in.json"},
       to_json(example_snapshot())},
      {"in.json: document schema: 'crossdock.topology' stands where 'crossdock.placement' is needed [schema-name]",
       {"convert", "--from", "mooncake", kGolden + "snapshot.json", "--placement", "in.json"},
       to_json(example_topology())},
  };
}

// Arguments need not be UTF-8.
std::string shown(const std::vector<std::string>& arguments) {
  return json(arguments).dump(-1, ' ', true, json::error_handler_t::replace);
}

bool has_line(const std::string& text, const std::string& wanted) {
  const bool is_end = wanted.starts_with("...");
  for (const std::string& line : lines_of(text))
    if (is_end ? line.ends_with(wanted.substr(3)) : line.starts_with(wanted)) return true;
  return false;
}

TEST_F(Cli, BadInput) {
  for (const auto& table : {bad_texts(), bad_placements(), bad_views(), bad_models(), bad_conversions(), bad_files()}) {
    for (const BadInput& bad : table) {
      SCOPED_TRACE(shown(bad.arguments) + " " + bad.line);
      write("in.json", bad.text);
      const Ended result = run(bad.arguments);
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_TRUE(has_line(result.out + result.err, bad.line)) << result.out << result.err;
      EXPECT_TRUE(is_plain(result.out + result.err)) << result.out << result.err;
      // Diagnostics are what validate is asked for; elsewhere nothing stands where a result is expected.
      EXPECT_EQ(bad.arguments[0] == "validate" ? result.err : result.out, "");
    }
  }
  EXPECT_EQ(files(), std::vector<std::string>{"in.json"});
}

TEST_F(Cli, BadTextIsBadInEveryCommand) {
  const std::string placement = to_json(example_placement());
  write("in.json", placement.substr(0, placement.size() - 1));
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"inspect", "in.json"},
                                                    {"digest", "in.json"},
                                                    {"schema", "--config", "in.json"},
                                                    {"schema", "--schema", "in.json"},
                                                    {"placement", "--config", "in.json"},
                                                    {"placement", "--schema", "in.json"},
                                                    {"convert", "--from", "mooncake", "in.json"},
                                                    {"convert", "--to", "mooncake", "in.json"}}) {
    SCOPED_TRACE(json(arguments).dump());
    const std::string error = refusal_of(arguments);
    EXPECT_NE(error.find(": line 1, column " + std::to_string(placement.size()) + ": syntax error"), std::string::npos)
        << error;
    EXPECT_TRUE(error.ends_with(" [json-syntax]\n")) << error;
  }
}

TEST_F(Cli, ANulByteDoesNotEndADocument) {
  write("in.json", to_json(example_topology()) + '\0' + "trailing");
  const Ended result = run({"validate", "in.json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.out.find("[json-syntax]"), std::string::npos) << result.out;
}

}  // namespace
// Messages quote what a document holds; quoted text may be cut, and may not be UTF-8 at all.
TEST_F(Cli, FaultsAboutTextOfAnyKindAreJson) {
  std::string long_text = "a";
  for (int i = 0; i < 50; ++i) long_text += "\xc3\xa9";
  for (const std::string& text :
       {R"({"schema":")" + long_text + R"(","version":1})",
        R"({"schema":"crossdock.topology","version":1,")" + long_text + R"(":0})",
        std::string("{\"schema\":\"crossdock.binding\xff\"}"), std::string("\xff\xfe"),
        R"({"schema":"crossdock.snapshot","version":1,"cache_schema_digest":")" + long_text + R"("})"}) {
    write("in.json", text);
    const Ended result = run({"validate", "--json", "in.json"});
    EXPECT_EQ(result.exit_code, 2) << text;
    EXPECT_FALSE(json::parse(result.out, nullptr, false).is_discarded()) << result.out;
  }
}

}  // namespace crossdock::testing
