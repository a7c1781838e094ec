#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>
#include <untax/flow/device_control.hpp>
#include <untax/flow/watch.hpp>
#include <untax/symmetric/heap.hpp>
#include <untax/symmetric/owned_symmetric.hpp>
#include <untax/world/byte_exchange.hpp>
#include <untax/world/options.hpp>

namespace untax {

/// One rank's view of the world: who it is, its symmetric heap, and how the ranks meet.
///
/// Calls marked *collective* are made by every rank, in the same order and with the same arguments;
/// a difference is found and reported. A world is used by one thread of the rank at a time, apart
/// from `make_watch`, `fail`, `check`, `stopped` and the questions, which any thread may ask.
///
/// A rank that destroys its world has finished; if an exception does it, the rank has failed, and
/// the peers that wait for it learn it at once. A process that was forked from the rank's is no
/// part of the world: its copy refuses collective calls, and its end means nothing to the ranks.
class world {
 public:
  /// The views of `ranks` ranks that are threads of this process: give each to a thread of its own,
  /// or use `run_threads`. Throws `invalid_argument`, `out_of_memory`.
  [[nodiscard]] static std::vector<world> threads(int ranks, const world_options& options = {});
  /// The views of `ranks` ranks of this process, rank r on GPU r with its heap in that GPU's
  /// memory: give each to a thread of its own, or use `run_gpus`. Throws `unsupported` if there are
  /// fewer GPUs or one of them cannot reach another's memory, `out_of_memory`.
  ///
  /// With `ranks_per_gpu` n, rank r is on GPU r / n, and its kernels take an n-th of the
  /// multiprocessors: right, but not fast. NCCL, copy engines and graphs do not work so, nor does
  /// compute-sanitizer: `unsupported`. A caller should make the streams that it needs once, one a
  /// rank, since a GPU has 32 queues for all of them.
  ///
  /// The host can neither read nor write such heaps by their addresses; kernels and cudaMemcpyAsync
  /// do, and so `translate` and `symmetric::at` are for them. Before the last view goes, it waits
  /// for everything that runs on these GPUs.
  [[nodiscard]] static std::vector<world> local_gpus(int ranks, const world_options& options = {});
  /// The rank of this process, in the world its launcher describes: `untax run --processes`,
  /// torchrun, mpirun or srun; a world of one rank if there is no launcher. With `memory` cuda,
  /// rank r is on GPU r modulo those that are visible, or on the option `device`, which becomes the
  /// current device of the calling thread, and what `local_gpus` says of heaps holds. Collective:
  /// it returns when all ranks have come. Throws `disagreement` when their settings differ,
  /// `timeout` when a rank does not come, `peer_lost` when one dies.
  [[nodiscard]] static world from_environment(const world_options& options = {},
                                              const environment& env = environment());

  /// A world of processes of this host that can already exchange bytes, by the store of a process
  /// group, say: this one is rank `rank` of `ranks`, which may be some of the processes only.
  /// `exchange` is called once, by every rank. For the rest it is as `from_environment`. Throws
  /// also `unsupported` if the ranks are on several hosts, and what `exchange` throws.
  [[nodiscard]] static world from_exchange(int rank, int ranks, const byte_exchange& exchange,
                                           const world_options& options = {});

  world(world&& other) noexcept;
  world& operator=(world&& other) noexcept;
  ~world();
  /// Whether it is a rank's, and was not moved from.
  [[nodiscard]] explicit operator bool() const noexcept { return member_ != nullptr; }

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// "threads", "processes", "GPUs" (of this process) or "alone".
  [[nodiscard]] std::string_view kind() const noexcept;
  /// Where the heaps lie.
  [[nodiscard]] memory_kind memory() const noexcept;
  /// The number of the rank's GPU, as this process counts; -1 if the heaps are in host memory.
  [[nodiscard]] int device() const noexcept;
  /// How many ranks share a GPU: 1, unless they were asked to.
  [[nodiscard]] int ranks_per_gpu() const noexcept;
  /// Makes the rank's GPU the current one of the calling thread. Nothing if the heaps are in host
  /// memory.
  void use_device() const;
  /// What kernels of this rank need to wait and to be stopped. It is good for as long as the world
  /// lives. Throws `unsupported` if the heaps are in host memory.
  [[nodiscard]] device_control device_state() const;
  [[nodiscard]] std::chrono::milliseconds wait_limit() const noexcept;

  /// The same rank's world at an address that stays when this object is moved: what operators keep.
  /// It is good for as long as the world lives. Throws `invalid_argument` if this one was moved.
  [[nodiscard]] world& stable_view() const;

  /// Collective. `count` elements at every rank, aligned to 512 bytes; nothing is cleared. Nobody
  /// waits, unless the only room left is that of operators that ended: then all ranks meet once, so
  /// that none of them is still in those operators.
  template <class T>
  [[nodiscard]] symmetric<T> allocate(std::size_t count, std::string_view label) {
    make_room(count, sizeof(T), label);
    return heap().allocate<T>(count, label);
  }
  /// Collective. As `allocate`, for an owner whose end is not a meeting: its memory is retired, and
  /// handed out again after the next collective call that waits for all ranks.
  template <class T>
  [[nodiscard]] owned_symmetric<T> allocate_owned(std::size_t count, std::string_view label) {
    return {heap(), allocate<T>(count, label)};
  }
  /// Collective. As `allocate`, with all bytes of all ranks zero when it returns. It waits for all
  /// ranks twice, so it is safe even where peers may still write into something that was freed
  /// before.
  template <class T>
  [[nodiscard]] symmetric<T> allocate_cleared(std::size_t count, std::string_view label) {
    const symmetric<T> made = allocate<T>(count, label);
    clear(made.local(), made.size_bytes());
    return made;
  }
  /// Collective. As both of these.
  template <class T>
  [[nodiscard]] owned_symmetric<T> allocate_owned_cleared(std::size_t count,
                                                          std::string_view label) {
    owned_symmetric<T> made = allocate_owned<T>(count, label);
    clear(made->local(), made->size_bytes());
    return made;
  }
  /// Collective. No rank may touch it any more; nobody waits.
  template <class T>
  void free(const symmetric<T>& allocation) {
    heap().free(allocation);
  }
  [[nodiscard]] symmetric_heap& heap();

  /// Whether loads and stores reach the memory of `peer`.
  [[nodiscard]] bool reachable(int peer) const noexcept;
  /// The rank in whose symmetric heap all of [p, p + bytes) lies, or -1.
  [[nodiscard]] int owner_of(const void* p, std::size_t bytes = 1) const noexcept;
  /// The copy at `peer` of what `p` points to. Throws `not_symmetric`, `invalid_argument`.
  template <class T>
  [[nodiscard]] T* translate(T* p, int peer) const {
    return static_cast<T*>(translate_address(p, peer));
  }

  /// Collective. Returns when all ranks have come; what they did before is visible after it.
  void barrier();
  /// Collective. Compares `what` and its `description` with those of all ranks, which it waits for.
  /// A difference is `disagreement` on every rank, with both sides.
  void agree(std::string_view what, std::string_view description);
  /// Collective. The same for what happens often: nobody waits, and a difference is found by the
  /// rank that comes second.
  void note(std::string_view what, std::string_view description);

  /// Counts the runs of operators on this world, from 1. Ranks run the same operators in the same
  /// order, so the number says how far each has come.
  [[nodiscard]] std::uint64_t next_run() noexcept;

  /// The guard for the waits of worker `slot` (from 0) of this rank. The world has to outlive it.
  [[nodiscard]] watch make_watch(int slot) const noexcept;
  /// Throws what ended a wait of this rank. `operator_name` is the one that stops.
  [[noreturn]] void throw_failure(wait_outcome outcome, std::string_view operator_name) const;
  /// Stops the world: all waits of all ranks end, with `text` as the reason. Only the first call of
  /// a world counts.
  void fail(errc code, const std::string& text) noexcept;
  [[nodiscard]] bool stopped() const noexcept;
  /// Whether an exception leaves a scope of the calling thread; it stops the world if it leaves the
  /// rank's body. A destructor that would meet its peers does not meet them then, since they may
  /// wait for this rank elsewhere; it leaves its symmetric memory to the world.
  [[nodiscard]] bool unwinding() const noexcept;
  /// Throws if the world was stopped, also by a kernel that gave up waiting: after kernels of this
  /// rank have ended, it says whether they ended well.
  void check() const;
  /// Calls `body`; an exception that leaves it stops the world with its text, and goes on.
  void run(const std::function<void(world&)>& body);

  /// Shared state of the ranks, for engines and diagnostics.
  [[nodiscard]] const control& state() const noexcept;

 private:
  struct member;
  explicit world(std::shared_ptr<member> m) noexcept;

  /// Refuses a world that was moved, and one that this process only has a copy of.
  [[nodiscard]] member& own() const;
  [[nodiscard]] void* translate_address(const void* p, int peer) const;
  void make_room(std::size_t count, std::size_t size, std::string_view label);
  void clear(void* local, std::size_t bytes);
  void meet(verb what, std::string_view name, std::string call);

  std::shared_ptr<member> member_;  ///< of the stable view: shares nothing, and only points
};

}  // namespace untax
