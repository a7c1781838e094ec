#include "ranks.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include <untax/memory/host_memory.hpp>

namespace multi_test {
namespace {

std::map<std::string, std::function<void()>>& bodies() {
  static std::map<std::string, std::function<void()>> all;
  return all;
}

int number_in_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::atoi(value) : -1;
}

}  // namespace

rank_body::rank_body(std::string name, std::function<void()> body) {
  bodies()[std::move(name)] = std::move(body);
}

int run_body(const std::string& name) {
  try {
    bodies().at(name)();
  } catch (const untax::error& e) {
    std::string text = e.what();
    std::replace(text.begin(), text.end(), '\n', '|');
    say(fmt::format("ERROR {} {} {}", untax::name_of(e.code()), untax::host_memory::now(), text));
    return 1;
  }
  return testing::Test::HasFailure() ? 3 : 0;
}

int launched_rank() { return number_in_environment("UNTAX_RANK"); }
int launched_size() { return number_in_environment("UNTAX_WORLD_SIZE"); }

untax::world_options small_world(std::chrono::milliseconds wait_limit) {
  untax::world_options options;
  options.heap_bytes = std::size_t{1} << 20;
  options.wait_limit = wait_limit;
  return options;
}

void say(const std::string& line) {
  // One write, so that lines of stdout and stderr are never mixed.
  const std::string whole = line + "\n";
  [[maybe_unused]] const auto written = write(STDOUT_FILENO, whole.data(), whole.size());
}

std::string outcome::said(int rank, const std::string& word) const {
  for (const std::string& line : lines[static_cast<std::size_t>(rank)]) {
    if (line.starts_with(word + " ")) return line.substr(word.size() + 1);
  }
  return "";
}

std::string outcome::all(int rank) const {
  std::string text = result.ends[static_cast<std::size_t>(rank)].text();
  for (const std::string& line : lines[static_cast<std::size_t>(rank)]) text += "\n  " + line;
  return text;
}

outcome launch(const std::string& name, int ranks,
               const std::vector<std::pair<std::string, std::string>>& variables,
               const std::function<void(int rank, const std::string& line)>& hears) {
  outcome o;
  o.lines.resize(static_cast<std::size_t>(ranks));
  untax::process_launch l;
  l.ranks = ranks;
  l.command = {"/proc/self/exe", "--as-rank", name};
  l.variables = variables;
  l.grace = 60s;
  l.limit = 180s;
  l.output = [&](int rank, std::string_view line) {
    o.lines[static_cast<std::size_t>(rank)].emplace_back(line);
    if (hears) hears(rank, std::string(line));
  };
  o.result = untax::launch_processes(l);
  return o;
}

void expect_error(const outcome& o, int rank, untax::errc code,
                  const std::vector<std::string>& parts) {
  const std::string said = o.said(rank, "ERROR");
  EXPECT_TRUE(said.starts_with(std::string(untax::name_of(code)) + " "))
      << "expected " << untax::name_of(code) << "\n"
      << o.all(rank);
  for (const std::string& part : parts) {
    EXPECT_NE(said.find(part), std::string::npos) << "missing: " << part << "\n" << o.all(rank);
  }
}

void expect_ok(const outcome& o) {
  for (std::size_t rank = 0; rank < o.lines.size(); ++rank) {
    EXPECT_TRUE(o.result.ends[rank].ok()) << o.all(static_cast<int>(rank));
  }
  EXPECT_TRUE(o.result.ok());
}

belongings belongings::now() {
  belongings b;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++b.descriptors;
  const std::string mine = fmt::format("untax-{}", geteuid());
  const std::string launched = fmt::format("untax-launch-{}-", getpid());
  for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
    const std::string name = entry.path().filename();
    if (name == mine || name.starts_with(launched)) ++b.directories;
  }
  b.children = waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
  return b;
}

bool process_exists(long process) { return kill(static_cast<pid_t>(process), 0) == 0; }

}  // namespace multi_test
