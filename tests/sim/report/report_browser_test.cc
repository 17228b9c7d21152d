// The page in a real browser, at the width of a phone and of a desktop. Pictures of it are left in the build folder.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "sim/report/run_report.h"
#include "tests/sim/report/browser.h"
#include "tests/sim/report/example_report.h"
#include "tests/support/paths.h"

namespace crossdock::test {
namespace {

namespace fs = std::filesystem;

constexpr Viewport kDesktop{1440, 900, false, false};
constexpr Viewport kPhone{375, 812, true, false};

class ReportPage : public ::testing::Test {
 protected:
  ReportPage()
      : folder_(fs::path(report_pages_path()) / ::testing::UnitTest::GetInstance()->current_test_info()->name()),
        profile_(fs::path(::testing::TempDir()) / fmt::format("crossdock-browser-{}", getpid())) {
    fs::create_directories(folder_);
    fs::create_directories(profile_);
    browser_ = std::make_unique<Browser>(chromium_path(), profile_.string());
  }
  ~ReportPage() override {
    browser_.reset();
    std::error_code ignored;
    fs::remove_all(profile_, ignored);
  }

  void open(const RunReport& report, const Viewport& viewport) {
    const fs::path page = folder_ / "page.html";
    std::ofstream(page, std::ios::binary) << report_html(report);
    browser_->open(page.string(), viewport);
  }

  void expect_no_problems() {
    browser_->settle();
    for (const std::string& problem : browser_->problems()) ADD_FAILURE() << problem;
  }

  double number(const std::string& expression) { return browser_->evaluate(expression).get<double>(); }
  std::string text(const std::string& expression) { return browser_->evaluate(expression).get<std::string>(); }
  bool is_true(const std::string& expression) { return browser_->evaluate(expression).get<bool>(); }

  // How much of the run the timeline shows, in ns, and from where.
  double view_length() { return number("page.timeline.view.end - page.timeline.view.begin"); }
  double view_begin() { return number("page.timeline.view.begin"); }

  // Where the timeline's canvas is, after it was scrolled into sight.
  std::pair<double, double> canvas_corner() {
    browser_->evaluate("page.timeline.canvas.scrollIntoView({block: 'center'})");
    browser_->settle();
    return {number("page.timeline.canvas.getBoundingClientRect().left"),
            number("page.timeline.canvas.getBoundingClientRect().top")};
  }

  // The middle of a track's first lane, in the canvas.
  double lane_middle(const std::string& track) {
    return number(fmt::format(
        "(row => AXIS_HEIGHT + row.y - page.timeline.box.scrollTop + 3 + row.label_height + row.lane_height / 2)"
        "(page.timeline.rows.find(row => row.track?.name === '{}'))",
        track));
  }

  fs::path folder_;
  fs::path profile_;
  std::unique_ptr<Browser> browser_;
};

// Elements that stick out of the page, unless a box around them scrolls.
constexpr const char* kOverflowing = R"js(
[...document.querySelectorAll('body *')].filter(node => {
  if (node.id === 'tip' || node.closest('.scroll, .picture, .heat') && !node.matches('.scroll, .picture, .heat')) return false;
  const box = node.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5);
}).map(node => node.outerHTML.slice(0, 120)).join('\n'))js";

// Boxes whose text or picture is cut off though they do not scroll.
constexpr const char* kClipped = R"js(
[...document.querySelectorAll('section, .body, dd, p, h1, h2, .heat, .columns > div')]
    .filter(node => node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0 && getComputedStyle(node).display !== 'inline')
    .map(node => node.outerHTML.slice(0, 120)).join('\n'))js";

// Texts with less contrast than 4.5 to 1 with what is behind them.
constexpr const char* kFaint = R"js((() => {
const channels = css => (css.match(/[\d.]+/g) ?? []).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const back = node => {
  for (; node; node = node.parentElement) {
    const colour = channels(getComputedStyle(node).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll('body *')].filter(node => !node.matches('script, noscript, noscript *') &&
    [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim() !== '')).filter(node => {
  const [a, b] = [light(channels(getComputedStyle(node).color)), light(back(node))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
}).map(node => node.outerHTML.slice(0, 120)).join('\n');
})())js";

// How many colours each canvas has.
constexpr const char* kCanvasColours = R"js(
[...document.querySelectorAll('canvas')].map(canvas => {
  const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return new Set(pixels).size;
}))js";

class ReportPageLooks : public ReportPage, public ::testing::WithParamInterface<Viewport> {};

TEST_P(ReportPageLooks, EverythingIsThereAndFitsThePage) {
  for (const RunReport& report : {example_report(), violated_report(), hostile_report(), RunReport{}}) {
    SCOPED_TRACE(report.scenario.empty() ? "empty report" : report.actual.substr(0, 40));
    open(report, GetParam());
    EXPECT_TRUE(is_true("typeof page === 'object'")) << "the script did not run to its end";
    EXPECT_EQ(number("innerWidth"), GetParam().width);
    EXPECT_LE(number("document.scrollingElement.scrollWidth"), GetParam().width);
    EXPECT_EQ(text(kOverflowing), "");
    EXPECT_EQ(text(kClipped), "");
    EXPECT_EQ(text(kFaint), "");
    for (const nlohmann::json& colours : browser_->evaluate(kCanvasColours)) EXPECT_GT(colours.get<int>(), 8);
    expect_no_problems();
  }
}

TEST_P(ReportPageLooks, TheTablesSayWhatTheReportSays) {
  const RunReport report = violated_report();
  open(report, GetParam());
  browser_->save_picture((folder_ / "whole.png").string(), true);
  const std::string shown = text("document.body.innerText");
  for (const std::string& expected :
       {report.scenario, report.shows, report.cluster, report.digest, report.replay, report.works[3].cause,
        report.violations[0].what, report.invariants[2].rule,
        std::string("Not as expected: expected every transfer activated, was one transfer aborted, I3 violated"),
        std::string("18446744073709551557"), std::string("transfer d0-t7"), std::string("aborted"),
        std::string("not ended"), std::string("251.66 MB"), std::string("1,204,113"), std::string("20.417331 ms"),
        std::string("48,113"), std::string("48.2 ms")})
    EXPECT_NE(shown.find(expected), std::string::npos) << expected;
  EXPECT_EQ(number("document.querySelectorAll('#works tbody tr').length"), 8);
  EXPECT_EQ(number("document.querySelectorAll('#invariants tbody tr').length"), 4);
  EXPECT_EQ(number("document.querySelectorAll('canvas').length"), 3);
  expect_no_problems();
}

INSTANTIATE_TEST_SUITE_P(Widths, ReportPageLooks,
                         ::testing::Values(kDesktop, kPhone, Viewport{1440, 900, false, true},
                                           Viewport{375, 812, true, true}, Viewport{768, 1024, true, false},
                                           Viewport{320, 640, true, false}),
                         [](const auto& test) {
                           return fmt::format("{}{}", test.param.is_dark ? "Dark" : "Light", test.param.width);
                         });

TEST_F(ReportPage, WheelDragKeysAndButtonsMoveTheTimeline) {
  open(example_report(), kDesktop);
  const double whole = view_length();
  const auto [left, top] = canvas_corner();
  const double x = left + 800;
  const double y = top + 200;

  browser_->mouse("mouseWheel", x, y, {{"deltaX", 0}, {"deltaY", -240}, {"modifiers", 2}});
  browser_->settle();
  const double zoomed = view_length();
  EXPECT_LT(zoomed, whole / 2);
  const double before_drag = view_begin();
  browser_->mouse("mousePressed", x, y, {{"button", "left"}, {"clickCount", 1}});
  browser_->mouse("mouseMoved", x - 100, y, {{"button", "left"}});
  browser_->mouse("mouseReleased", x - 100, y, {{"button", "left"}, {"clickCount", 1}});
  EXPECT_GT(view_begin(), before_drag);
  EXPECT_DOUBLE_EQ(view_length(), zoomed);
  const double before_pan = view_begin();
  browser_->mouse("mouseWheel", x, y, {{"deltaX", -50}, {"deltaY", 0}});
  browser_->settle();
  EXPECT_LT(view_begin(), before_pan);

  browser_->evaluate("document.querySelector('[aria-label=\"Zoom in\"]').click()");
  EXPECT_DOUBLE_EQ(view_length(), zoomed / 2);
  browser_->evaluate("document.querySelector('[aria-label=\"Show the whole run\"]').click()");
  EXPECT_DOUBLE_EQ(view_length(), whole);
  browser_->evaluate("page.timeline.canvas.dispatchEvent(new KeyboardEvent('keydown', {key: '+'}))");
  EXPECT_DOUBLE_EQ(view_length(), whole / 2);
  for (int i = 0; i < 60; ++i) browser_->evaluate("page.timeline.zoom(0.5)");
  EXPECT_DOUBLE_EQ(view_length(), 20) << "never closer than 20 ns";
  for (int i = 0; i < 60; ++i) browser_->evaluate("page.timeline.zoom(2)");
  EXPECT_DOUBLE_EQ(view_length(), whole) << "never wider than the run";

  const double height = number("page.timeline.spacer.clientHeight");
  browser_->evaluate("document.querySelector('[aria-label=\"Fold or unfold all hosts\"]').click()");
  browser_->settle();
  EXPECT_LT(number("page.timeline.spacer.clientHeight"), height / 3);
  expect_no_problems();
}

TEST_F(ReportPage, APinchZoomsAndATapTellsWhatAnEventIs) {
  open(example_report(), kPhone);
  const double whole = view_length();
  const auto [left, top] = canvas_corner();
  const double y = top + 120;
  browser_->touch("touchStart", {{left + 140, y}, {left + 180, y}});
  browser_->touch("touchMove", {{left + 120, y}, {left + 200, y}});
  browser_->touch("touchMove", {{left + 80, y}, {left + 240, y}});
  browser_->touch("touchEnd", {});
  browser_->settle();
  EXPECT_LT(view_length(), whole / 2);
  const double begin = view_begin();
  browser_->touch("touchStart", {{left + 200, y}});
  browser_->touch("touchMove", {{left + 150, y}});
  browser_->touch("touchMove", {{left + 100, y}});
  browser_->touch("touchEnd", {});
  browser_->settle();
  EXPECT_GT(view_begin(), begin);

  EXPECT_TRUE(is_true("document.getElementById('tip').hidden"));
  browser_->evaluate("page.timeline.show_all()");
  browser_->settle();
  // This state fills most of the run.
  browser_->touch("touchStart", {{left + 170, top + lane_middle("source p0-t0")}});
  browser_->touch("touchEnd", {});
  browser_->settle();
  EXPECT_EQ(text("document.querySelector('#tip b').textContent"), "serving");
  EXPECT_FALSE(is_true("document.getElementById('tip').hidden"));
  EXPECT_LE(number("document.getElementById('tip').getBoundingClientRect().right"), 375);
  browser_->save_picture((folder_ / "tap.png").string(), false);
  expect_no_problems();
}

TEST_F(ReportPage, HoveringTellsWhatIsUnderThePointer) {
  open(example_report(), kDesktop);
  const auto [left, top] = canvas_corner();
  browser_->mouse("mouseMoved", left + 700, top + lane_middle("source p0-t0"));
  EXPECT_EQ(text("document.querySelector('#tip b').textContent"), "serving");
  EXPECT_NE(text("document.getElementById('tip').innerText").find("h0 \u203a source p0-t0"), std::string::npos);
  browser_->save_picture((folder_ / "hover.png").string(), false);
  browser_->evaluate("page.links.canvas.scrollIntoView({block: 'center'})");
  browser_->settle();
  browser_->mouse("mouseMoved", number("page.links.canvas.getBoundingClientRect().left") + 600,
                  number("page.links.canvas.getBoundingClientRect().top") + 40);
  EXPECT_EQ(text("document.querySelector('#tip b').textContent"), text("page.data.links[0].name"));
  browser_->evaluate("page.traffic.canvas.scrollIntoView({block: 'center'})");
  browser_->settle();
  browser_->mouse("mouseMoved", number("page.traffic.canvas.getBoundingClientRect().left + page.traffic.left + 5"),
                  number("page.traffic.canvas.getBoundingClientRect().top + page.traffic.top + 5"));
  EXPECT_EQ(text("document.querySelector('#tip b').textContent"), "p0-t0 \u2192 d0-t0");
  expect_no_problems();
}

TEST_F(ReportPage, TheTimeOfAViolationLeadsToItsPlaceInTheTimeline) {
  open(violated_report(), kDesktop);
  browser_->evaluate("document.querySelector('#violations button.link').click()");
  browser_->settle();
  EXPECT_LT(view_begin(), 20'417'331);
  EXPECT_GT(view_begin() + view_length(), 20'417'331);
  EXPECT_LT(view_length(), 5'000'000);
  browser_->save_picture((folder_ / "violation.png").string(), false);
  expect_no_problems();
}

TEST_F(ReportPage, HostileTextsStayText) {
  open(hostile_report(), kDesktop);
  EXPECT_TRUE(is_true("window.broken === undefined"));
  EXPECT_EQ(number("document.querySelectorAll('img').length"), 0);
  EXPECT_EQ(number("document.querySelectorAll('script').length"), 2);
  const std::string shown = text("document.body.innerText");
  EXPECT_NE(shown.find("</script><script>window.broken = 1</script>"), std::string::npos);
  EXPECT_NE(shown.find("bad \\xff\\xc3 bytes"), std::string::npos);
  EXPECT_NE(shown.find("{{data}} {{script}} @page_html@"), std::string::npos);
  expect_no_problems();
}

TEST_F(ReportPage, ThePicturesFollowTheColourScheme) {
  open(example_report(), kDesktop);
  const std::string corner = "String(page.timeline.canvas.getContext('2d').getImageData(2, 40, 1, 1).data)";
  const std::string light = text(corner);
  browser_->set_dark(true);
  browser_->settle();
  EXPECT_NE(text(corner), light);
  expect_no_problems();
}

TEST_F(ReportPage, ALargeRunIsShownInPart) {
  const RunReport report = example_report({.host_count = 40, .copies_per_target = 600});
  ASSERT_GT(report.trace.events.size(), 50'000u);
  open(report, kPhone);
  EXPECT_EQ(number("page.data.events.length"), 20'000);
  EXPECT_NE(text("document.body.innerText")
                .find(fmt::format("{} were left out",
                                  text(fmt::format("count_text({})", report.trace.events.size() - 20'000)))),
            std::string::npos);
  EXPECT_LE(number("page.timeline.canvas.height"), 1400) << "the canvas is as high as what is in sight";
  EXPECT_LE(number("document.scrollingElement.scrollWidth"), 375);
  browser_->save_picture((folder_ / "large.png").string(), true);
  expect_no_problems();
}

}  // namespace
}  // namespace crossdock::test
