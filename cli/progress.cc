#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

namespace crossdock::cli {
namespace {

constexpr size_t kBarCellsMax = 40;
constexpr size_t kBarCellsMin = 10;
constexpr double kEtaSecondsMax = 99 * 3600.0;

struct Unit {
  double bytes;
  const char* name;
  int decimals;
};

Unit unit_of(double bytes) {
  constexpr std::array kUnits = {Unit{1e15, "PB", 2}, Unit{1e12, "TB", 2}, Unit{1e9, "GB", 2}, Unit{1e6, "MB", 2},
                                 Unit{1e3, "kB", 2}};
  for (const Unit& unit : kUnits)
    if (bytes >= unit.bytes * 0.999995) return unit;  // else it would read as 1000.00 of the next smaller unit
  return Unit{1, "B", 0};
}

double fraction_of(const ProgressState& state) {
  if (state.done_bytes >= state.total_bytes) return 1;
  return static_cast<double>(state.done_bytes) / static_cast<double>(state.total_bytes);
}

// Rounded down, so that 100 % means complete.
uint64_t steps_done(const ProgressState& state, uint64_t steps) {
  if (state.done_bytes >= state.total_bytes) return steps;
  return std::min(steps - 1, static_cast<uint64_t>(fraction_of(state) * static_cast<double>(steps)));
}

std::string eta_text(const ProgressState& state) {
  if (state.done_bytes >= state.total_bytes) return "0:00";
  if (!state.bytes_per_s || *state.bytes_per_s <= 0) return "-:--";
  const double seconds = static_cast<double>(state.total_bytes - state.done_bytes) / *state.bytes_per_s;
  if (seconds > kEtaSecondsMax) return "over 99 h";
  const uint64_t whole = static_cast<uint64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string rate_text(const ProgressState& state) {
  if (!state.bytes_per_s) return "- GB/s";
  const Unit unit = unit_of(*state.bytes_per_s);
  return fmt::format("{:.{}f} {}/s", *state.bytes_per_s / unit.bytes, unit.decimals, unit.name);
}

std::string bar_text(const ProgressState& state, size_t cells) {
  const size_t full = static_cast<size_t>(steps_done(state, cells));
  std::string bar(full, '=');
  if (full < cells) bar += '>';
  bar.resize(cells, ' ');
  return "[" + bar + "]";
}

}  // namespace

ProgressMode progress_mode(bool quiet) {
  if (quiet) return ProgressMode::kQuiet;
  return ::isatty(STDERR_FILENO) == 1 ? ProgressMode::kTerminal : ProgressMode::kLines;
}

std::string progress_line(const ProgressState& state, std::optional<size_t> columns) {
  const Unit unit = unit_of(static_cast<double>(state.total_bytes));
  const std::string rest = fmt::format("{:3} %  {:.{}f} / {:.{}f} {}  {}  ETA {}", steps_done(state, 100),
                                       static_cast<double>(state.done_bytes) / unit.bytes, unit.decimals,
                                       static_cast<double>(state.total_bytes) / unit.bytes, unit.decimals, unit.name,
                                       rate_text(state), eta_text(state));
  std::string line = state.label + "  ";
  const size_t around = line.size() + rest.size() + 4;  // of the bar: its brackets and two spaces
  if (columns && *columns >= around + kBarCellsMin)
    line += bar_text(state, std::min(*columns - around, kBarCellsMax)) + "  ";
  line += rest;
  if (columns && line.size() > *columns) line.resize(*columns);
  return line;
}

Progress::Progress(std::string label, uint64_t total_bytes, ProgressMode mode, Seconds seconds, Write write,
                   Columns columns)
    : state_{std::move(label), 0, total_bytes, {}},
      mode_(mode),
      seconds_(std::move(seconds)),
      write_(std::move(write)),
      columns_(std::move(columns)),
      shown_seconds_(seconds_()) {
  samples_.push_back(Sample{shown_seconds_, 0});
}

void Progress::update(uint64_t done_bytes) {
  if (mode_ == ProgressMode::kQuiet) return;
  state_.done_bytes = done_bytes;
  const double now = seconds_();
  sample(now);
  if (is_due(now)) show(now);
}

void Progress::finish() {
  mode_ = ProgressMode::kQuiet;
  if (std::exchange(is_line_open_, false)) write_("\r\x1b[K");
}

void Progress::sample(double now) {
  if (now - samples_.back().seconds < kRewriteSeconds) return;
  samples_.push_back(Sample{now, state_.done_bytes});
  // The oldest sample stays until the next one is old enough, so the rate is taken over kRateSeconds at least, once
  // that much has passed.
  while (samples_.size() > 2 && now - samples_[1].seconds >= kRateSeconds) samples_.pop_front();
  const Sample& first = samples_.front();
  const uint64_t bytes = state_.done_bytes - std::min(state_.done_bytes, first.done_bytes);
  state_.bytes_per_s = static_cast<double>(bytes) / (now - first.seconds);
}

bool Progress::is_due(double now) const {
  const double since = now - shown_seconds_;
  if (mode_ == ProgressMode::kTerminal) return since >= kRewriteSeconds;
  if (since < kLineSecondsMin) return false;
  return since >= kLineSeconds || steps_done(state_, 10) > shown_tenths_;
}

void Progress::show(double now) {
  shown_seconds_ = now;
  shown_tenths_ = steps_done(state_, 10);
  if (mode_ == ProgressMode::kLines) return write_(fmt::format("crossdock: {}\n", progress_line(state_, {})));
  // The last column stays free: some terminals begin a new line once it is written.
  write_(fmt::format("\r{}\x1b[K", progress_line(state_, std::max<size_t>(columns_(), 1) - 1)));
  is_line_open_ = true;
}

double Progress::steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Progress::write_to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

size_t Progress::stderr_columns() {
  winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool ProgressClock::is_due() {
  if (quiet_ || Progress::steady_seconds() < next_seconds_) return false;
  next_seconds_ = Progress::steady_seconds() + Progress::kLineSeconds;
  return true;
}

}  // namespace crossdock::cli
