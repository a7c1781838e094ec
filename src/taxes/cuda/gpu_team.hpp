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

/// The GPUs of this machine as ranks that one thread drives. It is for measurements, which have to
/// control the time and the order of launches on each rank.
class gpu_team {
 public:
  /// `ranks` 0 means all GPUs, and at least two. Throws `unsupported` if there are fewer.
  gpu_team(int ranks, std::size_t heap_bytes);
  gpu_team(const gpu_team&) = delete;
  gpu_team& operator=(const gpu_team&) = delete;
  ~gpu_team();

  [[nodiscard]] int size() const noexcept { return static_cast<int>(worlds_.size()); }
  [[nodiscard]] std::string device_name() const;
  /// The argument for kernels of a rank; defined in gpu_team.cuh.
  [[nodiscard]] device_world world_of(int rank) const;
  [[nodiscard]] cudaStream_t stream_of(int rank) const {
    return members_[static_cast<std::size_t>(rank)].stream;
  }
  void use(int rank) const;

  /// Allocates `count` zeroed elements at every rank. Returns the handle of each rank.
  template <class T>
  [[nodiscard]] std::vector<symmetric<T>> allocate(std::size_t count, const char* label) {
    std::vector<symmetric<T>> made;
    for (int rank = 0; rank < size(); ++rank) {
      made.push_back(worlds_[static_cast<std::size_t>(rank)].allocate<T>(count, label));
      clear(rank, made.back().local(), count * sizeof(T));
    }
    return made;
  }

  /// Calls `body(world)` for all ranks at once, each in a thread: for collective calls.
  void together(const std::function<void(world&)>& body);

  /// Calls `launch(rank, stream)`, which launches kernels on that GPU, for each of `ranks`. The
  /// kernels start together. Returns the seconds of the slowest rank.
  double timed(const std::vector<int>& ranks,
               const std::function<void(int rank, cudaStream_t stream)>& launch);
  /// As `timed` for all ranks, but each rank has a thread that launches while the kernels run, as
  /// eager programs do. So the time includes the launches.
  double timed_eagerly(const std::function<void(int rank, cudaStream_t stream)>& launch);
  /// As `timed`, but without a gate and without timing.
  void run(const std::vector<int>& ranks,
           const std::function<void(int rank, cudaStream_t stream)>& launch);
  /// Waits for all ranks. Throws the error that stopped the kernels of a rank, or an error of CUDA.
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
