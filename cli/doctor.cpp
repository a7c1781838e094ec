#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <untax/core/build_info.hpp>
#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>
#include <untax/core/version.hpp>
#include <untax/rma/signal.hpp>
#include <untax/taxes/machine.hpp>
#include <untax/world/block.hpp>
#include <untax/world/launch.hpp>
#include <untax/world/placement.hpp>

#include "doctor.hpp"
#include "output.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

diagnosis processor(const machine_facts& facts) {
  diagnosis result{"processor", mood::good,
                   fmt::format("{}, {} of {} hardware threads can be used", facts.cpu, facts.cores,
                               facts.cores_present)};
  if (facts.numa_nodes > 1) result.text += fmt::format(", {} NUMA nodes", facts.numa_nodes);
  if (facts.cores < 2) {
    result.verdict = mood::warning;
    result.text += "; ranks take turns, so nothing can overlap and measured taxes mean little";
  }
  return result;
}

diagnosis memory(const machine_facts& facts) {
  constexpr std::size_t comfortable = std::size_t{4} << 30;
  diagnosis result{"memory", mood::good,
                   fmt::format("{} of {} available", format_bytes(facts.memory_available),
                               format_bytes(facts.memory_bytes))};
  if (facts.memory_available < comfortable) {
    result.verdict = mood::warning;
    result.text +=
        "; `untax taxes` of large models needs up to 12 GiB, so take a small one or fewer tokens";
  }
  return result;
}

// Two ranks pass a number back and forth, which uses heap, put, signal and wait. An invalid
// variable is found here too, since no world starts with it.
diagnosis ranks_as_threads() {
  constexpr std::uint64_t rounds = 1000;
  double microseconds = 0;
  try {
    run_threads(2, [&](world& me) {
      using counter = block::memory::counter;
      block self(me);
      const auto inbox = me.allocate_cleared<std::uint64_t>(1, "doctor's numbers");
      const auto arrived = me.allocate_cleared<counter>(1, "doctor's signals");
      const int other = 1 - me.rank();
      const auto begin = std::chrono::steady_clock::now();
      for (std::uint64_t i = 1; i <= rounds; ++i) {
        if (me.rank() == 0) put_with_signal(self, inbox.at(other), &i, 1, arrived.at(other), i);
        wait_until(self, arrived.local(), i, {.name = "doctor", .peer = other});
        if (*inbox.local() != i) {
          throw error(errc::internal, fmt::format("rank {} received {}; should be {}", me.rank(),
                                                  *inbox.local(), i));
        }
        if (me.rank() == 1) put_with_signal(self, inbox.at(other), &i, 1, arrived.at(other), i);
      }
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      if (me.rank() == 0) microseconds = took.count() / rounds;
    });
  } catch (const std::exception& wrong) {
    return {"threads", mood::bad, wrong.what()};
  }
  return {
      "threads", mood::good,
      fmt::format("2 ranks exchanged {} numbers, {:.2f} us there and back", rounds, microseconds)};
}

std::string refused(const char* call) {
  return fmt::format("{} is refused ({})", call, std::strerror(errno));
}

// Checks what `--processes` needs of the system: anonymous shared memory, and notice of the end of
// a process.
diagnosis ranks_as_processes() {
  diagnosis result{"processes", mood::good, "shared memory and process handles work"};
  const int shared = memfd_create("untax doctor", MFD_CLOEXEC);
  const int process = shared < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  if (shared < 0 || process < 0) {
    result.verdict = mood::warning;
    result.text =
        refused(shared < 0 ? "memfd_create" : "pidfd_open") +
        "; ranks can only be threads here, which is enough for everything but --processes";
  }
  if (process >= 0) close(process);
  if (shared >= 0) close(shared);
  return result;
}

diagnosis meeting_directory(const environment& variables) {
  const std::string wanted = variables.text(variable::runtime_directory).value_or("");
  const std::string directory =
      !wanted.empty() && access(wanted.c_str(), F_OK) == 0 ? wanted : "/tmp";
  if (access(directory.c_str(), W_OK | X_OK) == 0) return {"meeting place", mood::good, directory};
  return {
      "meeting place", mood::warning,
      fmt::format("{} cannot be written ({}); set XDG_RUNTIME_DIR to a directory of your own, or "
                  "--processes will not work",
                  directory, std::strerror(errno))};
}

diagnosis launcher(const environment& variables) {
  try {
    const placement place = placement_from(variables);
    if (place.launcher.empty()) return {"launcher", mood::good, "none: started alone"};
    return {"launcher", mood::good,
            fmt::format("{}, rank {} of {}", place.launcher, place.rank, place.world_size)};
  } catch (const error& wrong) {
    return {"launcher", mood::bad, wrong.what()};
  }
}

// Warns of unknown variables with untax's prefix, which are probably misspelt.
std::vector<diagnosis> unknown_variables() {
  std::vector<diagnosis> diagnoses;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("UNTAX_")) continue;
    bool known = false;
    for (const environment_variable* variable : environment_variables())
      known = known || name == variable->name;
    if (!known) {
      diagnoses.push_back(
          {"environment", mood::warning,
           fmt::format("{} is no variable of untax and has no effect; the list below has all",
                       name)});
    }
  }
  return diagnoses;
}

std::string variable_list(const environment& variables, int columns) {
  constexpr std::size_t indent = 4;
  std::size_t longest = 0;
  for (const environment_variable* variable : environment_variables())
    longest = std::max(longest, std::string_view(variable->name).size());
  std::string list;
  for (const environment_variable* variable : environment_variables()) {
    const std::string otherwise =
        *variable->fallback == '\0' ? "-" : fmt::format("- ({})", variable->fallback);
    list += fmt::format("{:<{}}  {}\n", variable->name, longest,
                        variables.text(*variable).value_or(otherwise));
    list += wrapped(variable->meaning, columns, std::string(indent, ' '));
  }
  return list;
}

// 0 if the variable is invalid, which the check of ranks reports.
std::size_t heap_bytes(const environment& variables) {
  try {
    return variables.bytes_or_fallback(variable::heap_bytes);
  } catch (const error&) {
    return 0;
  }
}

int examine() {
  const text_style how = style(stream::out);
  const int columns = width(stream::out);
  const environment variables;
  const machine_facts facts = read_machine();

  std::vector<diagnosis> diagnoses = {processor(facts),
                                      memory(facts),
                                      {"system", mood::good, facts.system},
                                      launcher(variables),
                                      meeting_directory(variables),
                                      ranks_as_processes(),
                                      ranks_as_threads()};
  gpu_examination gpus = examine_gpus(heap_bytes(variables), columns, how);
  for (auto& finding : gpus.findings) diagnoses.push_back(std::move(finding));
  for (auto& variable : unknown_variables()) diagnoses.push_back(std::move(variable));

  std::string text = fmt::format("untax {} ({})\n\n", version, build_commit());
  int bad = 0;
  for (const diagnosis& d : diagnoses) {
    static constexpr std::array<const char*, 3> words = {"ok", "warning", "failure"};
    const std::string word = fmt::format("{:<8}", words.at(static_cast<std::size_t>(d.verdict)));
    const std::string body = wrapped(d.text, columns, std::string(25, ' '));
    text +=
        fmt::format("  {} {:<13} {}", coloured(word, d.verdict, how), d.subject, body.substr(25));
    bad += d.verdict == mood::bad ? 1 : 0;
  }
  text += gpus.matrix;
  text += "\nEnvironment (- is not set, with the value that then holds)\n\n" +
          variable_list(variables, columns);
  text += bad == 0 ? "\nEverything that untax needs works.\n"
                   : fmt::format("\n{} of {} checks failed.\n", bad, diagnoses.size());
  print(text);
  return bad == 0 ? 0 : 1;
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
  CLI::App* verb =
      app.add_subcommand("doctor", "Say whether everything that untax needs works on this machine");
  verb->callback([&status] { status = examine(); });
}

}  // namespace untax::cli
