#include "sim/scenario/scenario_files.h"

#include <filesystem>
#include <utility>

#include "base/file.h"

namespace crossdock {
namespace {

constexpr uint64_t kClusterBytesMax = uint64_t{64} << 20;

}  // namespace

std::function<std::optional<std::string>(const std::string& name)> clusters_beside(const std::string& scenario_path) {
  return [folder = std::filesystem::path(scenario_path).parent_path()](
             const std::string& name) -> std::optional<std::string> {
    // A name and not a path: a scenario from elsewhere must not make this program read other files.
    if (name.empty() || name.find('/') != std::string::npos) return std::nullopt;
    for (const std::filesystem::path& beside : {folder / "clusters", folder / ".." / "clusters"}) {
      Result<std::string> cluster = read_file((beside / (name + ".json")).string(), kClusterBytesMax);
      if (cluster.ok()) return std::move(cluster).value();
    }
    return std::nullopt;
  };
}

}  // namespace crossdock
