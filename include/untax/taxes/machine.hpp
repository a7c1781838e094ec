#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace untax {

/// What a measurement has to say about the machine it ran on.
struct machine_facts {
  std::string system;     ///< "Linux 6.1.0 on x86_64"; the host's name is nobody's business
  std::string cpu;        ///< the processor's own name
  int cores_present = 0;  ///< hardware threads of the machine
  int cores = 0;          ///< that this process may use at once: affinity mask and cgroup quota
  int numa_nodes = 1;
  std::size_t memory_bytes = 0;  ///< of the machine, or the limit of the cgroup
  std::size_t memory_available = 0;
};

/// Reads them from /proc and /sys below `root`. What cannot be read keeps a harmless value: nothing
/// is thrown.
[[nodiscard]] machine_facts read_machine(const std::filesystem::path& root = "/");

}  // namespace untax
