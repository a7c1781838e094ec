#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <untax/taxes/machine.hpp>

namespace untax {

/// The load of the machine at one moment. Values that cannot be read are below 0.
struct machine_load {
  double at = 0;        ///< seconds of a steady clock
  double average = -1;  ///< runnable threads, as the mean over the last minute
  double busy = -1;     ///< seconds of processor time of all processes since the machine started
  double own = 0;       ///< the part of `busy` that this process used
};

/// Reads the load from /proc below `root`. Throws nothing.
[[nodiscard]] machine_load read_load(const std::filesystem::path& root = "/");

/// Warnings about times that were measured between two moments: other processes used processors, or
/// there are fewer cores than ranks. `ranks` is the number of ranks that are threads or processes;
/// 0 if they are GPUs.
[[nodiscard]] std::vector<std::string> load_warnings(const machine_facts& machine,
                                                     const machine_load& before,
                                                     const machine_load& after, int ranks);

}  // namespace untax
