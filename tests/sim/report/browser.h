// A headless Chromium, spoken to over a pipe (the DevTools protocol): what a person sees and does, in a test.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace crossdock::test {

struct Viewport {
  int width = 1440;
  int height = 900;
  bool is_phone = false;  // touch, and the page's own viewport setting counts
  bool is_dark = false;
};

// How a test with this parameter is called.
inline void PrintTo(const Viewport& viewport, std::ostream* out) {
  *out << viewport.width << 'x' << viewport.height << (viewport.is_dark ? " dark" : "");
}

// Every failure is an exception that says what Chromium answered, or that it did not within a minute.
class Browser {
 public:
  // `folder` holds its profile; it is left there.
  Browser(const std::string& program, const std::string& folder);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  // Returns once the page has loaded and drawn.
  void open(const std::string& path, const Viewport& viewport);
  void set_dark(bool is_dark);
  // The value of a JavaScript expression; a promise is waited for.
  nlohmann::json evaluate(const std::string& expression);
  // Input, at page coordinates.
  void mouse(const std::string& type, double x, double y, const nlohmann::json& more = nlohmann::json::object());
  void touch(const std::string& type, const std::vector<std::pair<double, double>>& points);
  void settle();  // until two more frames are drawn
  void save_picture(const std::string& path, bool whole_page);

  // What the page did wrong since it was opened: exceptions, errors on the console, requests to anywhere.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  nlohmann::json command(const std::string& method, const nlohmann::json& params);
  nlohmann::json next_message();
  void note_event(const nlohmann::json& message);

  pid_t child_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
  int last_id_ = 0;
  bool is_loaded_ = false;
  std::string session_;
  std::string pending_;  // bytes of the next message
  std::vector<std::string> problems_;
};

}  // namespace crossdock::test
