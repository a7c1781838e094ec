#include "gpus.hpp"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include <untax/core/environment.hpp>

namespace gpu_test {

namespace {

const char* asked(const char* variable) {
  return std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody sets it
}

/// Before CUDA starts: the kernel that a test fills vectors with would be loaded where it is first
/// used, behind the kernel of a rank on the same GPU that waits for this one.
[[maybe_unused]] const bool loads_at_once =
    sharing() == 1 || setenv("CUDA_MODULE_LOADING", "EAGER", 0) == 0;

}  // namespace

int sharing() {
  const char* ranks = asked(untax::variable::ranks_per_gpu.name);
  return ranks != nullptr ? std::stoi(ranks) : 1;
}

int gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count * sharing();
  cudaGetLastError();
  return 0;
}

std::string missing(int needed) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) {
    cudaGetLastError();
    int driver = 0;
    const bool no_driver = cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0;
    return fmt::format("needs {} or more GPUs: {}", needed,
                       no_driver ? "there is no NVIDIA driver" : cudaGetErrorString(result));
  }
  if (count * sharing() >= needed) return "";
  return fmt::format("needs {} or more GPUs, here {}", needed, count);
}

std::string watched(const std::string& reason) {
  // Such a tool puts a library into the process; there is no other way to know.
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libsanitizer-collection") != std::string::npos)
      return fmt::format("cannot pass under compute-sanitizer: {}", reason);
  }
  return "";
}

int cases(int usual) {
  const char* number = asked("UNTAX_GPU_CASES");
  return number != nullptr ? std::stoi(number) : usual;
}

int runs(int usual) {
  const char* number = asked("UNTAX_GPU_RUNS");
  return number != nullptr ? std::stoi(number) : usual;
}

untax::world_options gpu_world(std::chrono::milliseconds wait_limit) {
  untax::world_options options;
  options.heap_bytes = std::size_t{4} << 20;
  options.memory = untax::memory_kind::cuda;
  // The variable wins over the argument, so that mutants do not hold tests up for long.
  if (asked(untax::variable::wait_limit.name) == nullptr) options.wait_limit = wait_limit;
  return options;
}

void ok(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

void hold(cudaStream_t s, std::chrono::microseconds time) {
  ok(cudaLaunchHostFunc(
      s,
      [](void* microseconds) {
        std::this_thread::sleep_for(
            std::chrono::microseconds(reinterpret_cast<std::intptr_t>(microseconds)));
      },
      reinterpret_cast<void*>(static_cast<std::intptr_t>(time.count()))));
}

}  // namespace gpu_test
