// What model/mooncake can write, and where written ranges say that bytes lie.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/kv/binding_rules.h"
#include "model/wire/documents.h"
#include "tests/unit/model/mooncake/mooncake_fixture.h"

namespace crossdock::mooncake {
namespace {

template <class Document>
Valid<Document> make_valid(Document document) {
  Diagnostics diagnostics;
  auto valid = Valid<Document>::make(std::move(document), diagnostics);
  EXPECT_TRUE(valid.has_value()) << first_diagnostic(diagnostics);
  return std::move(valid).value();
}

struct Golden {
  Valid<PlacementManifest> placement = placement_of(golden("placement_gqa_pp2_tp2"));
  Valid<SnapshotDescriptor> snapshot = snapshot_of(golden("snapshot"), placement);
  Valid<RuntimeBinding> binding = binding_of(golden("binding"), placement, snapshot);
};

template <class Document>
struct Change {
  std::string what;
  std::function<void(Document&)> apply;
};

TEST(MooncakeWriting, PlacementWithoutAFormIsRefused) {
  using Placement = PlacementManifest;
  const auto both = [](Placement& p, auto change) {
    for (Component& component : p.cache_schema.groups[0].components) change(component);
  };
  const auto first_owns = [](Placement& p) -> std::vector<Ownership>& { return p.parts[0].owns; };
  const std::vector<Change<Placement>> changes = {
      {"two groups",
       [&](Placement& p) {
         p.cache_schema.groups.push_back(p.cache_schema.groups[0]);
         p.cache_schema.groups[0].layers = {Range(0, 2)};
         p.cache_schema.groups[1].layers = {Range(2, 3)};
       }},
      {"a window", [](Placement& p) { p.cache_schema.groups[0].live = LiveTokens::window(64); }},
      {"another component",
       [&](Placement& p) {
         p.cache_schema.groups[0].components[1].name = ComponentName("latent");
         for (Part& part : p.parts) part.owns[0].components[1] = ComponentName("latent");
       }},
      {"one component",
       [&](Placement& p) {
         p.cache_schema.groups[0].components.pop_back();
         for (Part& part : p.parts) part.owns[0].components.pop_back();
       }},
      {"differing dtypes", [](Placement& p) { p.cache_schema.groups[0].components[1].dtype = "float16"; }},
      {"an encoding", [&](Placement& p) { both(p, [](Component& c) { c.encoding = "packed"; }); }},
      {"rows of two tokens", [&](Placement& p) { both(p, [](Component& c) { c.tokens_per_row = 2; }); }},
      {"a state", [&](Placement& p) { both(p, [](Component& c) { c.tokens_per_row.reset(); }); }},
      {"context parallelism", [](Placement& p) { p.topology.sizes.cp = 2; }},
      {"expert parallelism", [](Placement& p) { p.topology.sizes.ep = 2; }},
      {"bounded tokens", [](Placement& p) { p.tokens = Range(0, 1000); }},
      {"no paging", [](Placement& p) { p.paging.reset(); }},
      {"another axis order", [](Placement& p) { p.paging->axis_order = AxisOrder::kHnd; }},
      {"split ownership",
       [&](Placement& p) {
         first_owns(p).push_back(first_owns(p)[0]);
         first_owns(p)[0].components.pop_back();
         first_owns(p)[1].components.erase(first_owns(p)[1].components.begin());
       }},
      {"heads in two pieces",
       [](Placement& p) {
         for (Part& part : p.parts) {
           const bool is_first = part.owns[0].heads.contains(0);
           part.owns[0].heads =
               is_first ? IntervalSet{Range(0, 1), Range(2, 3)} : IntervalSet{Range(1, 2), Range(3, 4)};
         }
       }},
      {"some tokens",
       [&](Placement& p) {
         first_owns(p).push_back(first_owns(p)[0]);
         first_owns(p)[0].tokens = TokenIntervals{{Range(0, 5)}};
         first_owns(p)[1].tokens = TokenIntervals{{Range(5, Range::kUnbounded)}};
       }},
      {"too many layers to list",
       [&](Placement& p) {
         p.cache_schema.groups[0].layers = {Range(0, uint64_t{1} << 50)};
         for (Part& part : p.parts)
           part.owns[0].layers =
               part.owns[0].layers.contains(2) ? IntervalSet{Range(2, uint64_t{1} << 50)} : IntervalSet{Range(0, 2)};
       }},
  };
  const Golden documents;
  for (const auto& change : changes) {
    Placement placement = *documents.placement;
    change.apply(placement);
    Diagnostics diagnostics;
    EXPECT_FALSE(write_placement(make_valid(std::move(placement)), diagnostics).has_value()) << change.what;
    EXPECT_TRUE(diagnostics.has(Rule::kForeignForm)) << change.what;
  }
}

TEST(MooncakeWriting, SnapshotWithoutAFormIsRefused) {
  const std::vector<Change<SnapshotDescriptor>> changes = {
      {"an adapter",
       [](SnapshotDescriptor& s) {
         s.adapter = Adapter{"lora", "1"};
       }},
      {"a salt", [](SnapshotDescriptor& s) { s.salt = "x"; }},
      {"another token fingerprint", [](SnapshotDescriptor& s) { s.token_fingerprint = "xxh3:1"; }},
      {"another semantic fingerprint", [](SnapshotDescriptor& s) { s.semantic_fingerprint = "rope"; }}};
  const Golden documents;
  for (const auto& change : changes) {
    SnapshotDescriptor snapshot = *documents.snapshot;
    change.apply(snapshot);
    Diagnostics diagnostics;
    EXPECT_FALSE(write_snapshot(make_valid(std::move(snapshot)), diagnostics).has_value()) << change.what;
    EXPECT_TRUE(diagnostics.has(Rule::kForeignForm)) << change.what;
  }
}

TEST(MooncakeWriting, BindingWithoutAFormIsRefused) {
  const PageTable short_table{PageTableId("t"), 4, 2, {0}};
  const std::vector<Change<RuntimeBinding>> changes = {
      {"a restarted instance", [](RuntimeBinding& b) { b.generation = 1; }},
      {"a later epoch", [](RuntimeBinding& b) { b.regions[0].epoch = 1; }},
      {"no address", [](RuntimeBinding& b) { b.regions[0].address.reset(); }},
      {"address zero", [](RuntimeBinding& b) { b.regions[0].address = 0; }},
      {"no bytes", [](RuntimeBinding& b) { b.regions[0].bytes = 0; }},
      {"no endpoint",
       [](RuntimeBinding& b) {
         for (Region& region : b.regions) region.endpoint.reset();
       }},
      {"no views", [](RuntimeBinding& b) { b.views.clear(); }},
      {"another component", [](RuntimeBinding& b) { b.views[0].component = ComponentName("latent"); }},
      {"some tokens of a cycle",
       [](RuntimeBinding& b) {
         b.views[0].cycle = CyclicTokens{1, 2, {Range(0, 1)}};
       }},
      {"a part of each head", [](RuntimeBinding& b) { b.views[0].dims = Range(0, 1); }},
      {"items apart", [](RuntimeBinding& b) { b.views[0].strides.dim = 4; }},
      {"a page table that ends too early",
       [&](RuntimeBinding& b) {
         b.page_tables = {short_table};
         b.views[0].tokens = Range(2, 7);
         b.views[0].pages = ViewPages{short_table.id, 64};
       }},
      {"a page table that begins too late",
       [&](RuntimeBinding& b) {
         b.page_tables = {short_table};
         b.views[0].tokens = Range(1, 3);
         b.views[0].pages = ViewPages{short_table.id, 64};
       }},
      {"an offset past 64 bits",
       [](RuntimeBinding& b) {
         b.views[0].layers = Range(0, 2);
         b.views[0].offset_bytes = b.views[0].strides.layer = UINT64_MAX - 1;
       }},
      {"too many ranges", [](RuntimeBinding& b) { b.views[0].layers = Range(0, uint64_t{1} << 50); }},
  };
  const Golden documents;
  for (const auto& change : changes) {
    RuntimeBinding binding = *documents.binding;
    change.apply(binding);
    Diagnostics diagnostics;
    const auto text =
        write_binding(make_valid(std::move(binding)), documents.placement, documents.snapshot, diagnostics);
    EXPECT_FALSE(text.has_value()) << change.what;
    EXPECT_TRUE(diagnostics.has(Rule::kForeignForm)) << change.what;
  }
}

TEST(MooncakeWriting, BindingOfOtherDocumentsIsRefused) {
  const Golden documents;
  const auto other_placement = placement_of(golden("placement_dp2"));
  SnapshotDescriptor longer = *documents.snapshot;
  longer.tokens = Range(2, 10);
  for (const auto& [placement, snapshot] :
       {std::pair(other_placement, documents.snapshot), std::pair(documents.placement, make_valid(longer))}) {
    Diagnostics diagnostics;
    EXPECT_FALSE(write_binding(documents.binding, placement, snapshot, diagnostics).has_value());
    EXPECT_TRUE(diagnostics.has(Rule::kBindingIdentity));
  }
}

// The golden binding as a runtime would state it: keys in pages of four tokens, values head by head, each in one view.
TEST(MooncakeWriting, PagesLayersAndHeadMajorViewsBecomeRanges) {
  const Golden documents;
  RuntimeBinding binding = *documents.binding;
  binding.devices[0].kind = "cuda";
  binding.page_tables = {PageTable{PageTableId("pages"), 4, 2, {2, 0}}};
  View key;
  key.component = ComponentName("key");
  key.layers = Range(0, 2);
  key.tokens = Range(2, 9);
  key.heads = Range(0, 2);
  key.dims = Range(0, 3);
  key.region = RegionId("pool-k");
  key.strides = ByteStrides{.layer = 192, .row = 12, .head = 6, .dim = 2};
  key.pages = ViewPages{PageTableId("pages"), 64};
  View value = key;
  value.component = ComponentName("value");
  value.dims = Range(0, 2);
  value.region = RegionId("pool-v");
  value.strides = ByteStrides{.layer = 64, .row = 4, .head = 32, .dim = 2};
  value.pages.reset();
  binding.views = {key, value};
  Diagnostics diagnostics;
  const auto text = write_binding(make_valid(std::move(binding)), documents.placement, documents.snapshot, diagnostics);
  EXPECT_EQ(text, golden("binding")) << first_diagnostic(diagnostics);
}

// Draws a view of layers [0,2), tokens [2,9) and heads [0,2) with its axes nested in any order and gaps between them.
View draw_view(const std::string& component, uint64_t head_dim, bool is_paged, Rng& rng, RuntimeBinding& binding) {
  const std::string id = "region-" + component;
  View view;
  view.component = ComponentName(component);
  view.layers = Range(0, 2);
  view.tokens = Range(2, 9);
  view.heads = Range(0, 2);
  view.dims = Range(0, head_dim);
  view.region = RegionId(id);
  view.offset_bytes = 2 * rng.below(4);
  view.strides.dim = 2;
  PageTable table{PageTableId("table-" + component), rng.in(Range(1, 6)), rng.below(3), {0, 1, 2, 3, 4, 5, 6, 7, 8}};
  rng.shuffle(table.slots);
  uint64_t page_stride = 0;
  std::vector<std::pair<uint64_t*, uint64_t>> axes = {
      {&view.strides.layer, 2}, {&view.strides.head, 2}, {&view.strides.row, is_paged ? table.page_tokens : 7}};
  if (is_paged) axes.emplace_back(&page_stride, table.slots.size());
  rng.shuffle(axes);
  // Mooncake's pages have the heads inside the rows (rule axis-order).
  const auto place_of = [&](const uint64_t* stride) {
    return std::find_if(axes.begin(), axes.end(), [&](const auto& axis) { return axis.first == stride; });
  };
  if (is_paged && place_of(&view.strides.head) > place_of(&view.strides.row))
    std::swap(*place_of(&view.strides.head), *place_of(&view.strides.row));
  uint64_t span = head_dim * 2;
  for (const auto& [stride, extent] : axes) {
    *stride = span + 2 * rng.below(3);
    span += *stride * (extent - 1);
  }
  if (is_paged) {
    view.pages = ViewPages{table.id, page_stride};
    binding.page_tables.push_back(table);
  }
  const uint64_t address = binding.regions.size() * 100000 + 2;
  binding.regions.push_back(Region{view.region, 0, view.offset_bytes + span, DeviceId("host"), address, "here:1"});
  return view;
}

using Element = std::tuple<uint64_t, std::string, uint64_t, uint64_t>;  // layer, component, token, head

// The formula of model/kv/view.h, element by element.
std::map<Element, uint64_t> offsets_of_views(const RuntimeBinding& binding) {
  std::map<Element, uint64_t> offsets;
  for (const View& view : binding.views) {
    for (uint64_t layer = 0; layer < 2; ++layer) {
      for (uint64_t token = 2; token < 9; ++token) {
        for (uint64_t head = 0; head < 2; ++head) {
          uint64_t offset = view.offset_bytes + layer * view.strides.layer + head * view.strides.head;
          if (view.pages) {
            const bool is_first = binding.page_tables[0].id == view.pages->table;
            const PageTable& table = binding.page_tables[is_first ? 0 : 1];
            const uint64_t row = token - table.token_begin;
            offset += table.slots[row / table.page_tokens] * view.pages->page_stride_bytes;
            offset += row % table.page_tokens * view.strides.row;
          } else {
            offset += (token - 2) * view.strides.row;
          }
          offsets[{layer, view.component.text(), token, head}] = offset;
        }
      }
    }
  }
  return offsets;
}

// Mooncake's meaning of a range; a key twice would show as a wrong number of elements.
std::pair<std::map<Element, uint64_t>, size_t> offsets_of_ranges(const Json& ranges) {
  std::map<Element, uint64_t> offsets;
  size_t element_count = 0;
  for (const Json& range : ranges) {
    for (uint64_t t = 0; t < range["token_count"]; ++t) {
      for (uint64_t h = 0; h < range["head_count"]; ++h) {
        const Element element(range["global_layer_id"], range["component"], range["token_start"].get<uint64_t>() + t,
                              range["head_start"].get<uint64_t>() + h);
        offsets[element] = range["offset_bytes"].get<uint64_t>() + t * range["token_stride_bytes"].get<uint64_t>() +
                           h * range["head_stride_bytes"].get<uint64_t>();
        ++element_count;
      }
    }
  }
  return {offsets, element_count};
}

TEST(MooncakeWriting, RangesPutEachElementWhereItsViewDoes) {
  const Golden documents;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    RuntimeBinding binding = *documents.binding;
    binding.regions.clear();
    const bool key_is_paged = rng.chance(1, 2);
    const bool value_is_paged = rng.chance(1, 2);
    binding.views = {draw_view("key", 3, key_is_paged, rng, binding)};
    binding.views.push_back(draw_view("value", 2, value_is_paged, rng, binding));
    const auto valid = make_valid(std::move(binding));
    Diagnostics diagnostics;
    check_binding(valid, documents.placement, documents.snapshot, diagnostics);
    ASSERT_EQ(first_diagnostic(diagnostics), "");  // the drawn views are ones that a runtime may have

    const auto text = write_binding(valid, documents.placement, documents.snapshot, diagnostics);
    ASSERT_TRUE(text.has_value()) << first_diagnostic(diagnostics);
    const auto [offsets, element_count] = offsets_of_ranges(Json::parse(*text)["binding"]["ranges"]);
    EXPECT_EQ(offsets, offsets_of_views(*valid));
    EXPECT_EQ(element_count, offsets.size());

    const auto read = binding_of(*text, documents.placement, documents.snapshot);
    EXPECT_EQ(write_binding(read, documents.placement, documents.snapshot, diagnostics), text);
    check_binding(read, documents.placement, documents.snapshot, diagnostics);
    EXPECT_EQ(first_diagnostic(diagnostics), "");
  }
}

}  // namespace
}  // namespace crossdock::mooncake
