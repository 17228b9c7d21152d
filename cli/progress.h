// Progress of long work, on standard error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace crossdock::cli {

enum class ProgressMode {
  kQuiet,     // no output
  kLines,     // lines, for logs
  kTerminal,  // one line that is rewritten
};

// kTerminal when standard error is a terminal.
ProgressMode progress_mode(bool quiet);

struct ProgressState {
  std::string label;
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
  std::optional<double> bytes_per_s;  // empty: not known yet
};

// "copying  [=====>              ]  27 %  2.71 / 10.00 GB  3.21 GB/s  ETA 0:02", at most `columns` wide: the bar
// shrinks first, then the line is cut. No bar when `columns` is empty. The label is counted as ASCII.
std::string progress_line(const ProgressState& state, std::optional<size_t> columns);

// Used by one thread. The destructor clears what it shows.
class Progress {
 public:
  using Seconds = std::function<double()>;              // since any moment, monotonic
  using Write = std::function<void(std::string_view)>;  // to standard error
  using Columns = std::function<size_t()>;              // of the terminal

  static constexpr double kRewriteSeconds = 0.1;  // at least, between two texts on a terminal
  static constexpr double kLineSeconds = 5;       // between two lines where less than a tenth was done
  static constexpr double kLineSecondsMin = 1;    // between any two lines
  static constexpr double kRateSeconds = 3;       // that the rate is taken over

  Progress(std::string label, uint64_t total_bytes, ProgressMode mode, Seconds seconds = steady_seconds,
           Write write = write_to_stderr, Columns columns = stderr_columns);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap enough to call for each piece of work. On a terminal the line is rewritten at most ten times a second;
  // otherwise a line is printed for each tenth of the work and after five seconds without one, at most once a second.
  void update(uint64_t done_bytes);
  // Clears the line on a terminal. Shows nothing afterwards.
  void finish();

  static double steady_seconds();
  static void write_to_stderr(std::string_view text);
  static size_t stderr_columns();  // 80 when unknown

 private:
  struct Sample {
    double seconds;
    uint64_t done_bytes;
  };

  void sample(double now);
  bool is_due(double now) const;
  void show(double now);

  ProgressState state_;
  ProgressMode mode_;
  Seconds seconds_;
  Write write_;
  Columns columns_;
  std::deque<Sample> samples_;  // of the last kRateSeconds, kRewriteSeconds apart, and one from before
  double shown_seconds_;
  uint64_t shown_tenths_ = 0;
  bool is_line_open_ = false;
};

// When work that is counted in pieces has to say how far it is: every kLineSeconds, and never when quiet.
class ProgressClock {
 public:
  explicit ProgressClock(bool quiet) : quiet_(quiet) {}

  // True when a line is due; the next one is due kLineSeconds later.
  bool is_due();

 private:
  bool quiet_;
  double next_seconds_ = Progress::steady_seconds() + Progress::kLineSeconds;
};

}  // namespace crossdock::cli
