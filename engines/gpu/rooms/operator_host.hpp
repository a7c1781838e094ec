#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/launch/operator_launcher.hpp"
#include "engines/gpu/launch/whole_run.hpp"
#include "engines/gpu/rooms/shared_room.hpp"

namespace untax::gpu {

/// The memory that the kernels of a plan need at a rank.
struct kernel_memory {
  struct inbox_need {
    std::size_t bytes = 0;
    room_content content = room_content::opened;
  };
  int element_bytes = 2;
  int threads = 0;                       ///< of a block of the main kernel
  std::optional<inbox_need> inbox = {};  ///< none if peers write only into results
  std::size_t counters = 0;              ///< in symmetric memory
  std::optional<int> own_words = {};     ///< in this GPU's memory: epochs of blocks, and counts
};

/// The host half of the kernels of a plan, for one rank: the launcher, the inbox, which plans of an
/// operator may share, and the frame of a run. It is destroyed before the members of its owner that
/// kernels use, since its destructor waits for the kernels.
class operator_host {
 public:
  /// Throws `unsupported` as `operator_launcher`.
  operator_host(world& w, std::string_view name, launcher_streams streams)
      : launcher_(w, name, streams) {}

  [[nodiscard]] operator_launcher& launcher() noexcept { return launcher_; }
  [[nodiscard]] const operator_launcher& launcher() const noexcept { return launcher_; }

  /// Collective. The arguments of runs, with memory of their own; the inbox may be shared with
  /// other plans if `rooms` is not null. Throws `out_of_memory`.
  [[nodiscard]] run_arguments allocate(const kernel_memory& need, room_pool* rooms);

  /// As `shared_room::forget_captures`.
  void forget_captures() const noexcept { room_.forget_captures(); }

  /// One run: calls `launches(run, stream)`, which launches the kernels, after the inbox was handed
  /// over. Without a given stream it returns when the kernels have ended. Throws the error that
  /// stopped the world.
  template <class Launches>
  void run(stream_ref given, const Launches& launches) const {
    const bool waits = given.handle == nullptr;
    const cudaStream_t stream = launcher_.stream_of(given);
    whole_run run = launcher_.begin(stream);
    room_.enter(run, stream);
    launches(run, stream);
    if (!waits) return;
    launcher_.wait(stream, "a kernel failed");
    launcher_.ranks().check();
  }

 private:
  plan_room room_;
  operator_launcher launcher_;  // destroyed first
};

}  // namespace untax::gpu
