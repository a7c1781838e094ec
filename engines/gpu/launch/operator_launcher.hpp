#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <untax/core/stream_ref.hpp>
#include <untax/symmetric/owned_symmetric.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/launch/whole_run.hpp"
#include "engines/gpu/trace/operator_trace.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax::gpu {

/// The streams that an operator has, beside that of a caller.
struct launcher_streams {
  bool own = false;  ///< for callers who give none
  int side = 0;      ///< for what runs beside a caller's stream
};

/// What one start of a kernel takes, apart from its arguments.
struct kernel_start_form {
  const void* kernel = nullptr;
  int blocks = 1;
  int threads = 1;
  std::size_t shared_bytes = 0;
  bool early = false;  ///< programmatic dependent launch; not where ranks share a GPU
  int together = 1;    ///< blocks of a cluster
};

/// The host's half of an operator on GPUs, as far as all operators are alike: the memory of one
/// rank, its streams, the dry run, the beginning of a run, and the end together with the others.
///
/// An operator uses it in this order, the same at all ranks:
///
/// 1. It is made: this makes the streams, and refuses a world that has too many of them.
/// 2. The operator refuses what its kernels cannot do.
/// 3. `symmetric_memory`, collective; `own_words`, of each rank for itself.
/// 4. `dry_run`. From then on kernels of peers may wait for this rank.
/// 5. For each run `begin`, and every launch by what that gives back.
///
/// The rank's GPU has to be the current device throughout.
class operator_launcher {
 public:
  /// `name` is the operator's. Throws `unsupported` where ranks share a GPU and it has more streams
  /// than queues.
  operator_launcher(world& w, std::string_view name, launcher_streams streams);
  operator_launcher(const operator_launcher&) = delete;
  operator_launcher& operator=(const operator_launcher&) = delete;
  /// After a dry run it is collective: it waits for all that runs on the GPU, meets the others, and
  /// retires the memory. Where a kernel failed, or the world was stopped, or an exception is about
  /// to stop it, there is no meeting, and symmetric memory is left to the world.
  ~operator_launcher();

  [[nodiscard]] world& ranks() const noexcept { return *world_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Throws `unsupported` in a world of more ranks.
  void require_at_most(int ranks) const;
  /// Whether kernels may take places as those before them leave them. Ranks that share a GPU need
  /// these places.
  [[nodiscard]] bool starts_early() const { return world_->ranks_per_gpu() == 1; }

  /// Collective. `count` elements at each rank, cleared, at least one; `what` names them beside the
  /// operator. Throws `out_of_memory`. It ends with the launcher.
  template <class T>
  symmetric<T> symmetric_memory(std::size_t count, const char* what) {
    auto made = world_->allocate_owned_cleared<T>(count > 0 ? count : 1, name_ + " " + what);
    const symmetric<T> handle = made.get();
    memory_.emplace_back(std::move(made));
    if (trace_) trace_->know(handle);
    return handle;
  }
  /// Words in this GPU's memory, zero: epochs of blocks, and counts. Ranks may differ in how
  /// many they have. Throws `out_of_memory`.
  [[nodiscard]] std::uint64_t* own_words(int count);
  /// The same elements in this GPU's memory, for kernels to read; null if there are none. Throws
  /// `out_of_memory`.
  template <class T>
  [[nodiscard]] const T* own_table(const std::vector<T>& elements) {
    return static_cast<const T*>(copy_of(elements.data(), elements.size() * sizeof(T)));
  }

  /// What kernels are given of every operator. `threads`: of a block of the main one, for traces.
  [[nodiscard]] run_arguments arguments(int element_bytes, int threads) const;

  /// That of a run: the caller's or else an own one, behind what the default stream has.
  [[nodiscard]] cudaStream_t stream_of(stream_ref given) const;
  [[nodiscard]] const side_stream& side(int i = 0) const {
    return side_[static_cast<std::size_t>(i)];
  }

  /// Calls `launches(stream)`, which starts every kernel of the operator so that it does nothing,
  /// and waits for them. So kernels are loaded, and get their stacks, before any of them waits for
  /// a peer: loading one later could wait for that one.
  template <class Launches>
  void dry_run(const Launches& launches) {
    const cudaStream_t stream = own_ ? own_->get() : side().get();
    launches(stream);
    wait(stream, "cannot run its kernels");
    ready_ = true;
  }

  /// The beginning of a run: its launches go by what is given back. Throws what stopped the world,
  /// and `unsupported` where ranks share a GPU and `stream` is being captured.
  [[nodiscard]] whole_run begin(cudaStream_t stream) const;
  /// Starts a kernel. Throws `internal`.
  void launch(const kernel_start_form& form, cudaStream_t stream, void** arguments) const;
  /// Returns when the stream has ended. Throws `internal`, with `failure`, if it did not end well.
  void wait(cudaStream_t stream, const char* failure) const;

  /// Copies a result that lies in symmetric memory to where a run wants it, if that is elsewhere.
  void copy_result(void* to, const void* from, std::size_t bytes, whole_run& run,
                   cudaStream_t stream) const;

  /// Throws `internal` that names the rank and the operator.
  void require(cudaError_t result, const char* failure) const;
  /// Lets a kernel have so much dynamic shared memory, and loads it.
  void prepare(const void* kernel, std::size_t shared_bytes) const;

 private:
  const void* copy_of(const void* data, std::size_t bytes);

  using owned = std::variant<owned_symmetric<std::byte>, owned_symmetric<std::uint64_t>>;

  world* world_;
  std::string name_;
  std::optional<stream> own_;
  std::deque<side_stream> side_;
  std::deque<scratch_memory> own_memory_;
  std::deque<owned> memory_;
  bool ready_ = false;
  std::shared_ptr<operator_trace> trace_;  // null unless one is recorded; ends first
};

}  // namespace untax::gpu
