#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace untax {

/// What worlds of GPUs want to know of one.
struct device_facts {
  std::string name;
  std::string bus;  ///< PCI address
  int major = 0;    ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t memory_free = 0;
  std::size_t l2_bytes = 0;
  bool virtual_memory = false;  ///< symmetric heaps can be made
  bool descriptors = false;     ///< and shared by processes
  bool multicast = false;       ///< untax does not use it
  int links = -1;               ///< NVLinks that are up; -1: not known
};

/// What one GPU can do with the memory of another.
struct peer_facts {
  bool access = false;
  bool atomics = false;    ///< natively, over the link
  double push = 0;         ///< bytes/s that its stores write there; 0: not measured
  double pull = 0;         ///< bytes/s that its loads read from there
  double signal_time = 0;  ///< seconds until a signal to it is seen, half of there and back
};

/// The GPUs that this process can use.
struct device_survey {
  std::string problem;  ///< why there are none; empty if there are
  std::string driver;   ///< "580.95.05, for CUDA 13.0"
  std::string runtime;  ///< "CUDA 13.0"
  std::vector<device_facts> devices;
  std::vector<std::vector<peer_facts>> peers;  ///< by device, then by the other one
  std::string measuring_problem;  ///< why rates could not be measured; empty if they could
};

/// Looks at all GPUs, and, if `measure` says so and there are several that reach each other, at
/// what their links do: about a second. Throws nothing but std::bad_alloc.
[[nodiscard]] device_survey survey_devices(bool measure);

}  // namespace untax
