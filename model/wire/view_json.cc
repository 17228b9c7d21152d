#include "model/wire/codec.h"

namespace crossdock {
namespace {

void encode_view(JsonWriter& out, const View& view) {
  out.begin_object();
  out.key("component").string(view.component.text());
  if (view.cycle) {
    out.key("cycle");
    encode(out, *view.cycle);
  }
  out.key("dims");
  encode(out, view.dims);
  out.key("heads");
  encode(out, view.heads);
  out.key("layers");
  encode(out, view.layers);
  out.key("offset_bytes").number(view.offset_bytes);
  if (view.pages) {
    out.key("pages").begin_object();
    out.key("page_stride_bytes").number(view.pages->page_stride_bytes);
    out.key("table").string(view.pages->table.text());
    out.end_object();
  }
  out.key("region").string(view.region.text());
  out.key("stride_bytes").begin_object();
  out.key("dim").number(view.strides.dim);
  out.key("head").number(view.strides.head);
  out.key("layer").number(view.strides.layer);
  out.key("row").number(view.strides.row);
  out.end_object();
  out.key("tokens");
  encode(out, view.tokens);
  out.end_object();
}

ByteStrides decode_strides(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  ByteStrides strides;
  strides.dim = in.number("dim");
  strides.head = in.number("head");
  strides.layer = in.number("layer");
  strides.row = in.number("row");
  in.finish();
  return strides;
}

ViewPages decode_pages(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  ViewPages pages;
  pages.page_stride_bytes = in.number("page_stride_bytes");
  pages.table = PageTableId(in.name("table"));
  in.finish();
  return pages;
}

View decode_view(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  View view;
  view.component = ComponentName(in.name("component"));
  in.optional("cycle", [&](const JsonCursor& cycle) { view.cycle = decode_cycle(cycle); });
  view.dims = in.range("dims");
  view.heads = in.range("heads");
  view.layers = in.range("layers");
  view.offset_bytes = in.number("offset_bytes");
  in.optional("pages", [&](const JsonCursor& pages) { view.pages = decode_pages(pages); });
  view.region = RegionId(in.name("region"));
  in.required("stride_bytes", [&](const JsonCursor& strides) { view.strides = decode_strides(strides); });
  view.tokens = in.range("tokens");
  in.finish();
  return view;
}

void encode_page_table(JsonWriter& out, const PageTable& table) {
  out.begin_object();
  out.key("id").string(table.id.text());
  out.key("page_tokens").number(table.page_tokens);
  out.key("slots");
  encode_list(out, table.slots, [](JsonWriter& list, uint64_t slot) { list.number(slot); });
  out.key("token_begin").number(table.token_begin);
  out.end_object();
}

PageTable decode_page_table(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  PageTable table;
  table.id = PageTableId(in.name("id"));
  table.page_tokens = in.number("page_tokens", 1);
  in.required("slots", [&](const JsonCursor& list) {
    table.slots = decode_list(list, [](const JsonCursor& slot) { return slot.unsigned_integer(); });
  });
  table.token_begin = in.number("token_begin");
  in.finish();
  return table;
}

}  // namespace

void encode(JsonWriter& out, const std::vector<PageTable>& tables) { encode_list(out, tables, encode_page_table); }

std::vector<PageTable> decode_page_tables(const JsonCursor& cursor) { return decode_list(cursor, decode_page_table); }

void encode(JsonWriter& out, const std::vector<View>& views) { encode_list(out, views, encode_view); }

std::vector<View> decode_views(const JsonCursor& cursor) { return decode_list(cursor, decode_view); }

}  // namespace crossdock
