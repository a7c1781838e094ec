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

/// One rank's view of the world: its number, its symmetric heap, and the calls in which ranks meet.
///
/// Calls marked *collective* are made by every rank, in the same order and with the same arguments;
/// a difference is found and reported as `disagreement`. They throw `peer_lost`, `timeout` or
/// `aborted` if a wait for the other ranks fails. Only one thread of the rank may use a world at a
/// time. Any thread may call `make_watch`, `fail`, `check`, `stopped` and the const functions that
/// only return values.
///
/// A rank that destroys its world has finished; on GPUs the destructor waits for the rank's GPU
/// first. If an exception destroys it, the rank has failed, and the peers that wait for it learn it
/// at once. A process that was forked from the rank's is not part of the world: its copy refuses
/// collective calls with `unsupported`, and its end has no effect on the ranks.
class world {
 public:
  /// The views of `ranks` ranks that are threads of this process. Each view is for a thread of its
  /// own; `run_threads` makes them. Throws `invalid_argument`, `out_of_memory`.
  [[nodiscard]] static std::vector<world> threads(int ranks, const world_options& options = {});
  /// The views of `ranks` ranks of this process. Rank r is on GPU r, with its heap in that GPU's
  /// memory. Each view is for a thread of its own; `run_gpus` makes them. Throws
  /// `invalid_argument`, `out_of_memory`, and `unsupported` if there are fewer GPUs or one of them
  /// cannot reach another's memory.
  ///
  /// With `ranks_per_gpu` n, rank r is on GPU r / n, and its kernels take an n-th of the
  /// multiprocessors: this is correct, but not fast. NCCL, copy engines, graphs and
  /// compute-sanitizer do not work with shared GPUs: `unsupported`. A caller should make the
  /// streams that it needs once, one for each rank, since a GPU has 32 queues for all of them.
  ///
  /// The host can neither read nor write such heaps by their addresses; kernels and cudaMemcpyAsync
  /// can, so `translate` and `symmetric::at` are for them. The last view that ends waits for
  /// everything that runs on these GPUs.
  [[nodiscard]] static std::vector<world> local_gpus(int ranks, const world_options& options = {});
  /// The rank of this process in the world that its launcher describes: `untax run --processes`,
  /// torchrun, mpirun or srun. Without a launcher it is a world of one rank. With `memory` cuda,
  /// rank r is on GPU r modulo the number of visible ones, or on the option `device`. This GPU
  /// becomes the current device of the calling thread, and the heaps are as those of `local_gpus`.
  /// Collective: it returns when all ranks have joined. Throws `disagreement` if their settings
  /// differ, `timeout` if a rank does not join, `peer_lost` if one dies, `invalid_argument` for
  /// variables that are wrong, and `unsupported` if the job spans several hosts.
  [[nodiscard]] static world from_environment(const world_options& options = {},
                                              const environment& env = environment());

  /// A world of processes of this host that can already exchange bytes, for example by the store of
  /// a process group. This one is rank `rank` of `ranks`, which may be only some of the processes.
  /// `exchange` is called once by every rank, not at all for a single rank. Otherwise it is as
  /// `from_environment`. Throws also `unsupported` if the ranks are on several hosts, and the
  /// errors of `exchange`.
  [[nodiscard]] static world from_exchange(int rank, int ranks, const byte_exchange& exchange,
                                           const world_options& options = {});

  world(world&& other) noexcept;
  world& operator=(world&& other) noexcept;
  ~world();
  /// Whether the object belongs to a rank, and was not moved from.
  [[nodiscard]] explicit operator bool() const noexcept { return member_ != nullptr; }

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// "threads", "processes", "GPUs" (of this process) or "alone".
  [[nodiscard]] std::string_view kind() const noexcept;
  /// The memory of the heaps: host or cuda.
  [[nodiscard]] memory_kind memory() const noexcept;
  /// The device number of the rank's GPU in this process; -1 if the heaps are in host memory.
  [[nodiscard]] int device() const noexcept;
  /// The number of ranks that share a GPU: 1, unless the option asks for more.
  [[nodiscard]] int ranks_per_gpu() const noexcept;
  /// Makes the rank's GPU the current device of the calling thread. It does nothing if the heaps
  /// are in host memory.
  void use_device() const;
  /// The state by which kernels of this rank wait and are stopped. It is valid as long as the world
  /// exists. Throws `unsupported` if the heaps are in host memory.
  [[nodiscard]] device_control device_state() const;
  [[nodiscard]] std::chrono::milliseconds wait_limit() const noexcept;

  /// The same rank's world at an address that does not change when this object is moved; operators
  /// keep it. It is valid as long as the world exists. Throws `invalid_argument` if this object was
  /// moved from.
  [[nodiscard]] world& stable_view() const;

  /// Collective. Allocates `count` elements at every rank, aligned to 512 bytes and not cleared.
  /// `label` names the owner in reports. It does not wait, unless the only free memory is that of
  /// operators that ended: then all ranks meet once, so that none of them is still in those
  /// operators. On GPUs a heap that is full grows, for which ranks meet, too. Throws
  /// `out_of_memory`, at all ranks, if a GPU has no more memory, or if the limit of the heap is
  /// reached (`world_options::heap_limit`).
  template <class T>
  [[nodiscard]] symmetric<T> allocate(std::size_t count, std::string_view label) {
    make_room(count, sizeof(T), label);
    return heap().allocate<T>(count, label);
  }
  /// Collective. As `allocate`, for an owner whose destructor does not meet the other ranks: its
  /// memory is retired, and reused after the next collective call that waits for all ranks.
  template <class T>
  [[nodiscard]] owned_symmetric<T> allocate_owned(std::size_t count, std::string_view label) {
    return {heap(), allocate<T>(count, label)};
  }
  /// Collective. As `allocate`, but all bytes of all ranks are zero when it returns. It waits for
  /// all ranks twice, so it is safe even if peers may still write into memory that was freed
  /// before.
  template <class T>
  [[nodiscard]] symmetric<T> allocate_cleared(std::size_t count, std::string_view label) {
    const symmetric<T> made = allocate<T>(count, label);
    clear(made.local(), made.size_bytes());
    return made;
  }
  /// Collective. As `allocate_owned`, but cleared as by `allocate_cleared`.
  template <class T>
  [[nodiscard]] owned_symmetric<T> allocate_owned_cleared(std::size_t count,
                                                          std::string_view label) {
    owned_symmetric<T> made = allocate_owned<T>(count, label);
    clear(made->local(), made->size_bytes());
    return made;
  }
  /// Collective. Frees an allocation, which no rank may access any more. It does not wait. Throws
  /// as `symmetric_heap::free`.
  template <class T>
  void free(const symmetric<T>& allocation) {
    heap().free(allocation);
  }
  /// This rank's heap.
  [[nodiscard]] symmetric_heap& heap();

  /// Whether loads and stores reach the memory of `peer`.
  [[nodiscard]] bool reachable(int peer) const noexcept;
  /// The rank whose symmetric heap contains all of [p, p + bytes), or -1.
  [[nodiscard]] int owner_of(const void* p, std::size_t bytes = 1) const noexcept;
  /// The address of the copy, at `peer`, of the data at `p` in any heap. Throws `not_symmetric`,
  /// `invalid_argument`.
  template <class T>
  [[nodiscard]] T* translate(T* p, int peer) const {
    return static_cast<T*>(translate_address(p, peer));
  }

  /// Collective. Returns when all ranks have entered. Accesses before it are then visible to all
  /// ranks.
  void barrier();
  /// Collective. Compares `what` and its `description` with those of all ranks, and waits for them.
  /// If they differ, every rank throws `disagreement` with both versions.
  void agree(std::string_view what, std::string_view description);
  /// Collective. As `agree`, for frequent calls: it does not wait, so a difference is found by the
  /// rank that comes second.
  void note(std::string_view what, std::string_view description);

  /// The number of the next run of any operator on this world, from 1. Ranks run the same operators
  /// in the same order, so the numbers of two ranks tell which of them is behind.
  [[nodiscard]] std::uint64_t next_run() noexcept;

  /// Collective. The number, from 1, of the next object that all ranks make, such as an operator or
  /// an allocation, for `drop`.
  [[nodiscard]] std::uint64_t next_object() noexcept;
  /// Takes an object that this rank does not use any more. Any thread may call it; it does not
  /// wait. Objects are destroyed in the first call that waits for all ranks by which all of them
  /// have dropped the object of this number, in the order of numbers. So their destructors may be
  /// collective, and no rank has to drop its object when the others do. Number 0 is an object of
  /// this rank alone, which is destroyed in the rank's next such call, or by `end_own`.
  void drop(std::uint64_t number, std::shared_ptr<void> object);
  /// Destroys the dropped objects of this rank alone.
  void end_own();
  /// Destroys all dropped objects, before the rank ends: no destructor meets the other ranks from
  /// now on (`unwinding`).
  void end_dropped() noexcept;
  /// Keeps the memory of all ranks mapped, also when the world has ended.
  [[nodiscard]] std::shared_ptr<const void> mapping() const;

  /// The guard of the waits of worker `slot` (from 0) of this rank. The world has to outlive it.
  [[nodiscard]] watch make_watch(int slot) const noexcept;
  /// Throws the error that ended a wait of this rank. `operator_name` is the operator that stops.
  [[noreturn]] void throw_failure(wait_outcome outcome, std::string_view operator_name) const;
  /// Stops the world: all waits of all ranks end, with `text` as the reason. Only the first call in
  /// a world has an effect.
  void fail(errc code, const std::string& text) noexcept;
  /// Whether the world was stopped.
  [[nodiscard]] bool stopped() const noexcept;
  /// Whether an exception is leaving a scope of the calling thread, which stops the world if it
  /// leaves the rank's body, or the rank is destroying its dropped objects. A destructor that would
  /// meet its peers does not do so then, since they may wait for this rank elsewhere; it leaves its
  /// symmetric memory to the world.
  [[nodiscard]] bool unwinding() const noexcept;
  /// Throws if the world was stopped, also by a kernel that gave up waiting. A call after kernels
  /// of this rank have ended tells whether they succeeded.
  void check() const;
  /// Calls `body`. An exception that leaves it stops the world with its text, and is thrown on.
  void run(const std::function<void(world&)>& body);

  /// The shared state of the ranks, for engines and diagnostics.
  [[nodiscard]] const control& state() const noexcept;

 private:
  struct member;
  explicit world(std::shared_ptr<member> m) noexcept;

  /// Refuses a world that was moved from, and one of which this process only has a copy.
  [[nodiscard]] member& own() const;
  [[nodiscard]] void* translate_address(const void* p, int peer) const;
  void make_room(std::size_t count, std::size_t size, std::string_view label);
  void grow_heap(std::size_t bytes, std::string_view label);
  void clear(void* local, std::size_t bytes);
  void meet(verb what, std::string_view name, std::string call);

  std::shared_ptr<member> member_;  ///< in a stable view it only points, and owns nothing
};

}  // namespace untax
