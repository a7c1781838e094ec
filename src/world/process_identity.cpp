#include "process_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace untax {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Field `number` of /proc/PROCESS/stat, from 3 on, as proc(5) counts them; 0 if there is none.
std::uint64_t stat_field(int process, int number) {
  const std::string text = contents(fmt::format("/proc/{}/stat", process));
  // The name before these fields may contain any character, also blanks and brackets.
  const auto name_end = text.rfind(") ");
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 2));
  std::string skipped;
  for (int field = 3; field < number; ++field) fields >> skipped;
  std::uint64_t value = 0;
  fields >> value;
  return value;
}

bool started_with(int process, std::string_view variable) {
  const std::string text = '\0' + contents(fmt::format("/proc/{}/environ", process)) + '\0';
  return text.find('\0' + std::string(variable) + '\0') != std::string::npos;
}

}  // namespace

std::uint64_t start_of(int process) { return stat_field(process, 22); }

std::uint32_t process_namespace() {
  struct stat status {};
  if (stat("/proc/self/ns/pid", &status) != 0) return 0;
  return static_cast<std::uint32_t>(status.st_ino);
}

int who_set(std::string_view variable) {
  int process = getppid();
  while (process > 1 && started_with(process, variable)) {
    const auto parent = static_cast<int>(stat_field(process, 4));
    if (parent <= 0) break;
    process = parent;
  }
  return process;
}

std::string launcher_process(std::string_view variable) {
  const int process = who_set(variable);
  return fmt::format("child of process {}, which started at {}", process, start_of(process));
}

}  // namespace untax
