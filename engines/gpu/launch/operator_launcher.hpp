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
#include "engines/gpu/launch/operator_trace.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/launch/whole_run.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax::gpu {

/// The streams that an operator makes, in addition to the caller's stream.
struct launcher_streams {
  bool own = false;  ///< for callers that pass no stream
  int side = 0;      ///< number of streams for work beside a caller's stream
};

/// The launch parameters of a kernel, apart from its arguments.
struct kernel_start_form {
  const void* kernel = nullptr;
  int blocks = 1;
  int threads = 1;
  std::size_t shared_bytes = 0;
  bool early = false;  ///< programmatic dependent launch; not where ranks share a GPU
  int together = 1;    ///< blocks of a cluster
};

/// The part on the host that all GPU operators share, for one rank: its memory, its streams, the
/// dry run, and the begin of a run. Its owner has a `common_end`.
///
/// An operator uses it in this order, the same at all ranks:
///
/// 1. The constructor makes the streams, and throws if a GPU has too many of them.
/// 2. The operator throws for problems that its kernels do not support.
/// 3. `symmetric_memory`, which is collective; `own_words`, which is local.
/// 4. `dry_run`. From then on kernels of peers may wait for this rank.
/// 5. For each run `begin`; each launch of the run goes through the object that it returns.
///
/// The rank's GPU has to be the current device throughout.
class operator_launcher {
 public:
  /// `name` is the operator's. Throws `unsupported` where ranks share a GPU that has more streams
  /// than queues.
  operator_launcher(world& w, std::string_view name, launcher_streams streams);
  operator_launcher(const operator_launcher&) = delete;
  operator_launcher& operator=(const operator_launcher&) = delete;
  /// Waits for all work on the GPU after a dry run, and frees the memory; the `common_end` of its
  /// owner then waits for the other ranks. If a kernel failed, the world was stopped, or an
  /// exception is about to stop it, symmetric memory is left to the world.
  ~operator_launcher();

  [[nodiscard]] world& ranks() const noexcept { return *world_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Throws `unsupported` in a world of more than `ranks` ranks.
  void require_at_most(int ranks) const;
  /// Whether kernels may launch early (programmatic dependent launch). Where ranks share a GPU they
  /// may not: kernels of the other ranks need the resources.
  [[nodiscard]] bool starts_early() const { return world_->ranks_per_gpu() == 1; }

  /// Whether as many blocks are launched in clusters of two: only where ranks share a GPU. Blocks
  /// that are launched one by one each take a multiprocessor of a pair. While they wait for another
  /// rank, no kernel in clusters could start there, such as the GEMM of the rank for which they
  /// wait.
  [[nodiscard]] bool in_pairs(int blocks) const { return !starts_early() && blocks % 2 == 0; }

  /// Collective. Allocates `count` elements at each rank, at least one, cleared. `what` names them
  /// in errors, after the operator. The launcher owns them. Throws `out_of_memory`.
  template <class T>
  symmetric<T> symmetric_memory(std::size_t count, const char* what) {
    auto made = world_->allocate_owned_cleared<T>(count > 0 ? count : 1, name_ + " " + what);
    const symmetric<T> handle = made.get();
    memory_.emplace_back(std::move(made));
    if (trace_) trace_->know(handle);
    return handle;
  }
  /// Words in this GPU's memory, zero, for epochs of blocks and for counts. `count` may differ
  /// between ranks. Throws `out_of_memory`.
  [[nodiscard]] std::uint64_t* own_words(int count);
  /// Copies elements to this GPU's memory, for kernels to read; null if there are none. Throws
  /// `out_of_memory`.
  template <class T>
  [[nodiscard]] const T* own_table(const std::vector<T>& elements) {
    return static_cast<const T*>(copy_of(elements.data(), elements.size() * sizeof(T)));
  }

  /// Arguments that kernels of all operators need. `threads`: of a main kernel's block, for traces.
  [[nodiscard]] run_arguments arguments(int element_bytes, int threads) const;

  /// The stream of a run: the caller's, or an own one that waits for the default stream's work.
  [[nodiscard]] cudaStream_t stream_of(stream_ref given) const;
  [[nodiscard]] const side_stream& side(int i = 0) const {
    return side_[static_cast<std::size_t>(i)];
  }

  /// Calls `launches(stream)`, which launches every kernel of the operator such that it does
  /// nothing, and waits for them. This loads the kernels and allocates their stacks before any
  /// kernel waits for a peer: later, loading one could block behind such a kernel.
  template <class Launches>
  void dry_run(const Launches& launches) {
    const cudaStream_t stream = own_ ? own_->get() : side().get();
    launches(stream);
    wait(stream, "cannot run its kernels");
    ready_ = true;
  }

  /// Begins a run, whose launches go through the result. Throws the error that stopped the world,
  /// and `unsupported` where ranks share a GPU and `stream` is the default stream or captured.
  [[nodiscard]] whole_run begin(cudaStream_t stream) const;
  /// Launches a kernel. Throws `internal`.
  void launch(const kernel_start_form& form, cudaStream_t stream, void** arguments) const;
  /// Synchronises the stream. Throws `internal`, with `failure`, if its work failed.
  void wait(cudaStream_t stream, const char* failure) const;

  /// Copies a result from symmetric memory to the destination of a run, unless both are the same.
  void copy_result(void* to, const void* from, std::size_t bytes, whole_run& run,
                   cudaStream_t stream) const;

  /// Unless `result` is a success, throws `internal`, which names the rank and the operator.
  void require(cudaError_t result, const char* failure) const;
  /// Loads a kernel, and allows it `shared_bytes` of dynamic shared memory.
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
  std::shared_ptr<operator_trace> trace_;  // null unless a trace is recorded; destroyed first
};

}  // namespace untax::gpu
