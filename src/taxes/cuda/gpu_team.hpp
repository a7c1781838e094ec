#pragma once

#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <untax/symmetric/symmetric.hpp>
#include <untax/world/world.hpp>

#include "src/symmetric/cuda/driver.hpp"

namespace untax {
class device_world;
}

namespace untax {

/// The GPUs of this machine as ranks, driven by one thread: for measurements, where who launches
/// what and when has to be known.
class gpu_team {
 public:
  /// `ranks` 0 means all, and two at least. Throws `unsupported` if there are fewer GPUs.
  gpu_team(int ranks, std::size_t heap_bytes);
  gpu_team(const gpu_team&) = delete;
  gpu_team& operator=(const gpu_team&) = delete;
  ~gpu_team();

  [[nodiscard]] int size() const noexcept { return static_cast<int>(worlds_.size()); }
  [[nodiscard]] std::string device_name() const;
  /// What kernels of a rank are given; gpu_team.cuh has it.
  [[nodiscard]] device_world world_of(int rank) const;
  [[nodiscard]] cudaStream_t stream_of(int rank) const {
    return members_[static_cast<std::size_t>(rank)].stream;
  }
  void use(int rank) const;

  /// `count` zeroed elements at every rank: the handle of each.
  template <class T>
  [[nodiscard]] std::vector<symmetric<T>> allocate(std::size_t count, const char* label) {
    std::vector<symmetric<T>> made;
    for (int rank = 0; rank < size(); ++rank) {
      made.push_back(worlds_[static_cast<std::size_t>(rank)].allocate<T>(count, label));
      clear(rank, made.back().local(), count * sizeof(T));
    }
    return made;
  }

  /// Calls `body(world)` for all ranks at once, a thread each: for calls that wait for each other.
  void together(const std::function<void(world&)>& body);

  /// Calls `launch(rank, stream)` for each of `ranks`, which is to launch kernels on that GPU, and
  /// returns the seconds that each took, the longest. The kernels start together.
  double timed(const std::vector<int>& ranks,
               const std::function<void(int rank, cudaStream_t stream)>& launch);
  /// The same, each rank with a thread of its own that launches while the kernels run, as programs
  /// do that launch eagerly: what `launch` takes to launch is part of the time.
  double timed_eagerly(const std::function<void(int rank, cudaStream_t stream)>& launch);
  /// The same as `timed` without a clock.
  void run(const std::vector<int>& ranks,
           const std::function<void(int rank, cudaStream_t stream)>& launch);
  /// Throws what stopped the kernels of a rank, or what CUDA says.
  void finish();

 private:
  struct member {
    cudaStream_t stream = nullptr;
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
  };

  void clear(int rank, void* local, std::size_t bytes);
  [[nodiscard]] double longest_of(const std::vector<int>& ranks) const;
  void open_gate(int rank, std::uint64_t delay_ns);

  std::vector<world> worlds_;
  std::vector<member> members_;
  std::vector<symmetric<std::uint64_t>> gate_;
};

}  // namespace untax
