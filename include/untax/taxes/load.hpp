#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <untax/taxes/machine.hpp>

namespace untax {

/// How busy the machine is, at one moment. What cannot be read is below 0.
struct machine_load {
  double at = 0;        ///< seconds of a steady clock
  double average = -1;  ///< threads that ran or wanted to, over the last minute
  double busy = -1;     ///< seconds of processor time of everybody, since the machine started
  double own = 0;       ///< of them this process
};

/// Reads it from /proc below `root`. Nothing is thrown.
[[nodiscard]] machine_load read_load(const std::filesystem::path& root = "/");

/// Why times measured between two moments are worth less than they look: others used processors, or
/// there are fewer than ranks. `ranks` that are threads or processes; 0 if they are GPUs.
[[nodiscard]] std::vector<std::string> load_warnings(const machine_facts& machine,
                                                     const machine_load& before,
                                                     const machine_load& after, int ranks);

}  // namespace untax
