#include "launch_place.hpp"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill(2) is POSIX
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <random>
#include <string_view>

#include <fmt/format.h>

#include <untax/core/environment.hpp>

#include "meeting_place.hpp"
#include "process_identity.hpp"

namespace untax {
namespace {

/// The launcher of a directory, as the directory's name gives it.
struct owner {
  int process = 0;
  std::uint64_t start = 0;
  std::uint64_t space = 0;  // process namespace

  [[nodiscard]] static owner here() { return {getpid(), start_of(getpid()), process_namespace()}; }
  /// Whether the launcher is known to be dead. False in a process namespace that cannot be seen
  /// from here.
  [[nodiscard]] bool dead() const {
    if (space != process_namespace()) return false;
    if (kill(process, 0) != 0 && errno == ESRCH) return true;
    return start_of(process) != start;
  }
};

/// "untax-launch-PROCESS-START-NAMESPACE-RANDOM"; all numbers but PROCESS are hexadecimal.
std::string name_for(const owner& o) {
  std::random_device random;
  return fmt::format("{}{}-{:x}-{:x}-{:08x}", launch_directory, o.process, o.start, o.space,
                     random());
}

template <class Number>
bool take(std::string_view& text, Number& number, int base) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (failure != std::errc{} || end == text.data() + text.size() || *end != '-') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

std::optional<owner> owner_of(std::string_view name) {
  if (!name.starts_with(launch_directory)) return std::nullopt;
  name.remove_prefix(launch_directory.size());
  owner o;
  if (!take(name, o.process, 10) || !take(name, o.start, 16) || !take(name, o.space, 16))
    return std::nullopt;
  return o.process > 0 ? std::optional(o) : std::nullopt;
}

/// Removes the directories of launchers that were killed.
void sweep(const std::string& root) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    const auto o = owner_of(entry.path().filename().string());
    if (o && o->dead() && is_private_directory(entry.path()))
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

/// The directory for launches. It is short, since a socket's path has to fit into an address.
std::string root_of(const environment& env) {
  constexpr std::size_t longest = 32;
  const std::string root = runtime_directory(env);
  return root.size() <= longest ? root : "/tmp";
}

}  // namespace

launch_place::launch_place(const std::string& prescribed) : directory_(prescribed) {
  if (prescribed.empty()) {
    const std::string root = root_of(environment());
    sweep(root);
    directory_ = root + "/" + name_for(owner::here());
    return;
  }
  std::random_device random;
  word_ = fmt::format("{:08x}{:08x}", random(), random());
  std::error_code ignored;
  was_there_ = std::filesystem::exists(directory_, ignored);
}

launch_place::~launch_place() {
  std::error_code ignored;
  if (word_.empty()) {
    std::filesystem::remove_all(directory_, ignored);
    return;
  }
  meeting_place::remove_sockets(directory_, fmt::format("{}={}", variable::launch.name, word_));
  if (!was_there_) rmdir(directory_.c_str());  // only an empty directory
}

}  // namespace untax
