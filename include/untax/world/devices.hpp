#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace untax {

/// The properties of one GPU that matter to worlds of GPUs.
struct device_facts {
  std::string name;
  std::string bus;  ///< PCI address
  int major = 0;    ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t memory_free = 0;
  std::size_t l2_bytes = 0;
  bool virtual_memory = false;  ///< whether symmetric heaps can be made
  bool descriptors = false;     ///< whether processes can share these heaps
  bool multicast = false;       ///< untax does not use it
  int links = -1;               ///< NVLinks that are up; -1: not known
};

/// The access of one GPU to the memory of another.
struct peer_facts {
  bool access = false;     ///< whether the GPU can access the memory at all
  bool atomics = false;    ///< whether the link has native atomics
  double push = 0;         ///< rate of its stores to the other GPU, in bytes/s; 0: not measured
  double pull = 0;         ///< rate of its loads from the other GPU, in bytes/s; 0: not measured
  double signal_time = 0;  ///< seconds until the peer sees a signal: half of a round trip
};

/// The GPUs that this process can use.
struct device_survey {
  std::string problem;  ///< why there are none; empty if there are some
  std::string driver;   ///< "580.95.05, for CUDA 13.0"
  std::string runtime;  ///< "CUDA 13.0"
  std::vector<device_facts> devices;
  std::vector<std::vector<peer_facts>> peers;  ///< [i][j] is the access of device i to device j
  std::string measuring_problem;  ///< why rates could not be measured; empty if they were
};

/// Queries all GPUs. If `measure` is true and some of them reach each other, it also measures the
/// links. It blocks. It reports errors in the result, and throws only std::bad_alloc.
[[nodiscard]] device_survey survey_devices(bool measure);

}  // namespace untax
