#include "tests/sim/report/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <stdexcept>

namespace crossdock::test {
namespace {

using nlohmann::json;

constexpr int kAnswerMsMax = 60'000;

// Chromium reads commands on descriptor 3 and answers on 4.
[[noreturn]] void run_chromium(const std::string& program, const std::string& folder, int in, int out) {
  const int high_in = fcntl(in, F_DUPFD, 10);
  const int high_out = fcntl(out, F_DUPFD, 10);
  dup2(high_in, 3);
  dup2(high_out, 4);
  close(high_in);
  close(high_out);
  const int quiet = open("/dev/null", O_RDWR);
  for (int standard = 0; standard < 3; ++standard) dup2(quiet, standard);
  const std::string profile = "--user-data-dir=" + folder;
  execl(program.c_str(), program.c_str(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
        "--remote-debugging-pipe", profile.c_str(), "about:blank", nullptr);
  _exit(127);
}

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    bit_count += 6;
    if (bit_count >= 8) bytes.push_back(static_cast<char>(bits >> (bit_count -= 8) & 0xff));
  }
  return bytes;
}

}  // namespace

Browser::Browser(const std::string& program, const std::string& folder) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  child_ = fork();
  if (child_ == 0) {
    setpgid(0, 0);
    run_chromium(program, folder, in[0], out[1]);
  }
  close(in[0]);
  close(out[1]);
  to_child_ = in[1];
  from_child_ = out[0];
  signal(SIGPIPE, SIG_IGN);
  const json target = command("Target.createTarget", {{"url", "about:blank"}});
  session_ = command("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}}).at("sessionId");
  for (const char* domain : {"Page", "Runtime", "Log", "Network"})
    command(std::string(domain) + ".enable", json::object());
}

Browser::~Browser() {
  close(to_child_);  // Chromium ends when its pipe does
  for (int i = 0; i < 100 && child_ > 0; ++i) {
    if (waitpid(child_, nullptr, WNOHANG) == child_) child_ = -1;
    if (child_ > 0) usleep(50'000);
  }
  if (child_ > 0) {
    kill(-child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  close(from_child_);
}

json Browser::next_message() {
  for (;;) {
    const size_t end = pending_.find('\0');
    if (end != std::string::npos) {
      json message = json::parse(pending_.substr(0, end));
      pending_.erase(0, end + 1);
      return message;
    }
    pollfd wait{from_child_, POLLIN, 0};
    if (poll(&wait, 1, kAnswerMsMax) <= 0) throw std::runtime_error("Chromium does not answer");
    std::array<char, 65536> buffer{};
    const ssize_t got = read(from_child_, buffer.data(), buffer.size());
    if (got <= 0) throw std::runtime_error("Chromium has ended");
    pending_.append(buffer.data(), static_cast<size_t>(got));
  }
}

void Browser::note_event(const json& message) {
  const std::string method = message.value("method", "");
  const json params = message.value("params", json::object());
  if (method == "Page.loadEventFired") is_loaded_ = true;
  if (method == "Runtime.exceptionThrown") problems_.push_back(params.at("exceptionDetails").dump());
  if (method == "Log.entryAdded" && params.at("entry").at("level") == "error")
    problems_.push_back(params.at("entry").dump());
  if (method == "Runtime.consoleAPICalled") problems_.push_back(params.dump());
  if (method == "Network.requestWillBeSent") {
    const std::string url = params.at("request").at("url");
    if (!url.starts_with("file:") && !url.starts_with("about:")) problems_.push_back("request to " + url);
  }
}

json Browser::command(const std::string& method, const json& params) {
  const int id = ++last_id_;
  json message = {{"id", id}, {"method", method}, {"params", params}};
  if (!session_.empty()) message["sessionId"] = session_;
  const std::string text = message.dump() + '\0';
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t wrote = write(to_child_, text.data() + sent, text.size() - sent);
    if (wrote <= 0) throw std::runtime_error("Chromium did not start, or has ended");
    sent += static_cast<size_t>(wrote);
  }
  for (;;) {
    const json answer = next_message();
    if (answer.value("id", 0) != id) {
      note_event(answer);
      continue;
    }
    if (answer.contains("error")) throw std::runtime_error(method + ": " + answer["error"].dump());
    return answer.at("result");
  }
}

void Browser::open(const std::string& path, const Viewport& viewport) {
  command("Emulation.setDeviceMetricsOverride", {{"width", viewport.width},
                                                 {"height", viewport.height},
                                                 {"deviceScaleFactor", viewport.is_phone ? 2 : 1},
                                                 {"mobile", viewport.is_phone}});
  command("Emulation.setTouchEmulationEnabled", {{"enabled", viewport.is_phone}, {"maxTouchPoints", 5}});
  set_dark(viewport.is_dark);
  problems_.clear();
  is_loaded_ = false;
  const json answer = command("Page.navigate", {{"url", "file://" + path}});
  if (answer.contains("errorText")) throw std::runtime_error(path + ": " + answer["errorText"].get<std::string>());
  while (!is_loaded_) note_event(next_message());
  settle();
}

void Browser::set_dark(bool is_dark) {
  command("Emulation.setEmulatedMedia",
          {{"features", {{{"name", "prefers-color-scheme"}, {"value", is_dark ? "dark" : "light"}}}}});
}

json Browser::evaluate(const std::string& expression) {
  const json answer =
      command("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (answer.contains("exceptionDetails")) throw std::runtime_error(answer["exceptionDetails"].dump());
  return answer.at("result").value("value", json());
}

void Browser::mouse(const std::string& type, double x, double y, const json& more) {
  json params = {{"type", type}, {"x", x}, {"y", y}};
  params.update(more);
  command("Input.dispatchMouseEvent", params);
}

void Browser::touch(const std::string& type, const std::vector<std::pair<double, double>>& points) {
  json list = json::array();
  for (const auto& [x, y] : points) list.push_back({{"x", x}, {"y", y}, {"id", list.size()}});
  command("Input.dispatchTouchEvent", {{"type", type}, {"touchPoints", list}});
}

void Browser::settle() {
  evaluate(
      "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))");
}

void Browser::save_picture(const std::string& path, bool whole_page) {
  const json picture = command("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", whole_page}});
  std::ofstream(path, std::ios::binary) << from_base64(picture.at("data"));
}

}  // namespace crossdock::test
