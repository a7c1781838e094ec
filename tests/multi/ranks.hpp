#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>
#include <untax/world/world.hpp>

namespace multi_test {

using namespace std::chrono_literals;

/// The body of ranks that are processes: this program, started again with the name of the body as a
/// hidden argument. An untax::error that leaves the body becomes a line "ERROR <code> <monotonic
/// ns> <text>" and exit code 1.
struct rank_body {
  rank_body(std::string name, std::function<void()> body);
};

/// Runs the body `name`; what `main` does with the hidden argument.
int run_body(const std::string& name);

/// The rank that the launcher gave this process, also when a test plays another launcher.
int launched_rank();
int launched_size();

/// For waits that are expected to end before the limit: no machine is so slow that it strikes.
constexpr auto patient = 60s;
/// An event that comes at once may take this long on a busy machine, and is still far from the
/// limit.
constexpr auto soon = 20s;
/// For waits that are expected to reach the limit. All ranks have to wait by then.
constexpr auto impatient = 1500ms;

/// Small heaps.
untax::world_options small_world(std::chrono::milliseconds wait_limit = patient);

/// Writes a line that the test sees.
void say(const std::string& line);

/// The results of the ranks.
struct outcome {
  untax::launch_result result;
  std::vector<std::vector<std::string>> lines;  ///< by rank

  /// The rest of the first line of `rank` that starts with `word`; "" if there is none.
  [[nodiscard]] std::string said(int rank, const std::string& word) const;
  /// All that `rank` said, for failure messages.
  [[nodiscard]] std::string all(int rank) const;
};

/// Starts `ranks` processes with the body `name`. `hears` is called for every line while they run.
outcome launch(const std::string& name, int ranks,
               const std::vector<std::pair<std::string, std::string>>& variables = {},
               const std::function<void(int rank, const std::string& line)>& hears = {});

/// Expects that `rank` ended with the error `code` and that its text has these parts.
void expect_error(const outcome& o, int rank, untax::errc code,
                  const std::vector<std::string>& parts);

/// Expects that all ranks ended well.
void expect_ok(const outcome& o);

/// Descriptors, children and directories of this process that untax could leave behind.
struct belongings {
  std::size_t descriptors = 0;
  std::size_t directories = 0;
  bool children = false;

  static belongings now();
  bool operator==(const belongings&) const = default;
};

/// Whether there is a process with this id (a zombie counts).
bool process_exists(long process);

}  // namespace multi_test
