// The launcher of a rank is found behind any processes between them.
#include <unistd.h>

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "ranks.hpp"
#include "src/world/process_identity.hpp"

namespace {

using namespace multi_test;

constexpr auto variable = "UNTAX_TEST_ANCESTORS";

const rank_body asked("who set it", [] {
  say(fmt::format("SETTER {}", untax::who_set(fmt::format("{}=yes", variable))));
  say(fmt::format("NOBODY {}", untax::who_set(fmt::format("{}=no", variable)) == getppid()));
  say(fmt::format("STARTED {}", untax::start_of(getpid())));
});

TEST(ancestors, are_followed_while_they_carry_the_variable_of_the_rank) {
  const std::string me = std::filesystem::read_symlink("/proc/self/exe");
  std::string script = "\"$0\" --as-rank 'who set it'; exit $?";
  for (int between = 0; between < 4; ++between) {
    untax::process_launch l;
    l.ranks = 1;
    l.command = {me, "--as-rank", "who set it"};
    // Shells that stay there until their child has ended.
    if (between == 1) l.command = {"sh", "-c", script, me};
    if (between == 2) l.command = {"sh", "-c", "sh -c \"$1\" \"$0\"; exit $?", me, script};
    // A shell in a session and a process group of its own, which differ from those of its starter.
    if (between == 3) l.command = {"setsid", "-w", "sh", "-c", script, me};
    l.variables = {{variable, "yes"}};
    l.limit = 60s;
    outcome o;
    o.lines.resize(1);
    l.output = [&](int, std::string_view line) { o.lines[0].emplace_back(line); };
    o.result = untax::launch_processes(l);
    expect_ok(o);
    EXPECT_EQ(o.said(0, "SETTER"), std::to_string(getpid())) << "way " << between;
    EXPECT_EQ(o.said(0, "NOBODY"), "true");
    EXPECT_GE(std::stoull(o.said(0, "STARTED")), untax::start_of(getpid()));
  }
  EXPECT_GT(untax::start_of(getpid()), 0U);
  EXPECT_EQ(untax::start_of(-1), 0U) << "there is none";
}

}  // namespace
