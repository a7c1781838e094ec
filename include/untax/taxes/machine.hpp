#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace untax {

/// The properties of a machine that a measurement reports.
struct machine_facts {
  std::string system;     ///< "Linux 6.1.0 on x86_64", without the name of the host
  std::string cpu;        ///< the name of the processor
  int cores_present = 0;  ///< hardware threads of the machine
  int cores = 0;          ///< usable by this process: by affinity mask and cgroup quota
  int numa_nodes = 1;
  std::size_t memory_bytes = 0;  ///< of the machine, or the limit of the cgroup
  std::size_t memory_available = 0;
};

/// Reads the properties from /proc and /sys below `root`. A value that cannot be read keeps a
/// default. Throws nothing.
[[nodiscard]] machine_facts read_machine(const std::filesystem::path& root = "/");

}  // namespace untax
