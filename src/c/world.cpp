#include <untax/c/world.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/flow/control.hpp>
#include <untax/ops/run_order.hpp>

#include "given.hpp"
#include "reading.hpp"

namespace untax::c {
namespace {

void hand_over(std::vector<world> views, untax_world** to) {
  std::vector<std::unique_ptr<untax_world>> handles;
  for (world& view : views) handles.push_back(std::make_unique<untax_world>(std::move(view)));
  for (auto& handle : handles) *to++ = handle.release();
}

// Marks the rank as failed before it leaves, so that the other ranks learn of it.
void end_badly(world& ranks) noexcept {
  try {
    ranks.run([](world& /*w*/) { throw error(errc::aborted, "the rank has failed"); });
  } catch (...) {  // NOLINT(bugprone-empty-catch): it was thrown to be seen on its way
  }
}

untax_world::allocation allocation_at(untax_world& w, const void* local) {
  const std::scoped_lock lock(w.allocations_mutex);
  const auto match = w.allocations.find(local);
  if (match != w.allocations.end()) return match->second;
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {} was not given by untax_world_allocate, or is free already",
                          w.ranks.rank(), fmt::ptr(local)));
}

/// Memory that all ranks have dropped when it is destroyed.
struct dropped_memory {
  dropped_memory(world& w, const symmetric<std::byte>& m) : owner(&w), memory(m) {}
  dropped_memory(const dropped_memory&) = delete;
  dropped_memory& operator=(const dropped_memory&) = delete;
  ~dropped_memory() {
    if (owner->unwinding()) return;
    try {
      owner->free(memory);
    } catch (const error& e) {
      owner->fail(e.code(), e.what());
    }
  }

  world* owner;
  symmetric<std::byte> memory;
};

}  // namespace

void one_thread::refuse() const {
  throw error(
      errc::invalid_argument,
      fmt::format("rank {}: another thread is in a call of this world, which is used by one "
                  "thread at a time; let threads take turns, in the same order at all ranks",
                  world_.ranks.rank()));
}

}  // namespace untax::c

using untax::c::guarded;
using untax::c::require;

int32_t untax_world_threads(int32_t ranks, const untax_world_options* options,
                            untax_world** worlds) {
  return guarded(nullptr, [&] {
    require(worlds, "worlds");
    untax::c::hand_over(untax::world::threads(ranks, untax::c::options_of(options)), worlds);
  });
}

int32_t untax_world_gpus(int32_t ranks, const untax_world_options* options, untax_world** worlds) {
  return guarded(nullptr, [&] {
    require(worlds, "worlds");
    untax::c::hand_over(untax::world::local_gpus(ranks, untax::c::options_of(options)), worlds);
  });
}

int32_t untax_world_from_environment(const untax_world_options* options, untax_world** world) {
  return guarded(nullptr, [&] {
    require(world, "world");
    *world = new untax_world(untax::world::from_environment(untax::c::options_of(options)));
  });
}

int32_t untax_world_from_exchange(int32_t rank, int32_t ranks, untax_exchange exchange,
                                  void* context, const untax_world_options* options,
                                  untax_world** world) {
  return guarded(nullptr, [&] {
    require(reinterpret_cast<const void*>(exchange), "exchange");
    require(world, "world");
    const auto call = [&](std::span<const std::byte> mine, std::span<std::byte> bytes) {
      if (const int failed = exchange(context, mine.data(), mine.size(), bytes.data())) {
        throw untax::error(untax::errc::aborted,
                           fmt::format("rank {}: exchange returned {}, so the ranks do not know "
                                       "each other",
                                       rank, failed));
      }
    };
    *world = new untax_world(
        untax::world::from_exchange(rank, ranks, call, untax::c::options_of(options)));
  });
}

int32_t untax_world_destroy(untax_world* world) {
  if (world == nullptr) return untax_ok;
  return guarded(world, [&] {
    if (const int left = world->operators; left > 0) {
      throw untax::error(untax::errc::invalid_argument,
                         fmt::format("rank {}: {} operators are left that were made on this world; "
                                     "destroy or drop them first",
                                     world->ranks.rank(), left));
    }
    world->ranks.end_dropped();  // while the handle is whole, since the objects refer to it
    if (world->failed) untax::c::end_badly(world->ranks);
    delete world;
  });
}

int32_t untax_world_fail(untax_world* world, const char* text) {
  return guarded(nullptr, [&] {
    require(world, "world");
    world->failed = true;
    world->ranks.fail(untax::errc::aborted, text == nullptr ? "no reason given" : text);
  });
}

int32_t untax_world_rank(const untax_world* world) {
  return world == nullptr ? -1 : world->ranks.rank();
}

int32_t untax_world_size(const untax_world* world) {
  return world == nullptr ? -1 : world->ranks.size();
}

const char* untax_world_kind(const untax_world* world) {
  return world == nullptr ? "" : world->ranks.kind().data();
}

int32_t untax_world_device(const untax_world* world) {
  return world == nullptr ? -1 : world->ranks.device();
}

int32_t untax_world_ranks_per_gpu(const untax_world* world) {
  return world == nullptr ? -1 : world->ranks.ranks_per_gpu();
}

int64_t untax_world_heap_used(untax_world* world) {
  if (world == nullptr) return -1;
  int64_t used = -1;
  static_cast<void>(
      guarded(world, [&] { used = static_cast<int64_t>(world->ranks.heap().used()); }));
  return used;
}

int32_t untax_world_use_device(const untax_world* world) {
  return guarded(world, [&] {
    require(world, "world");
    world->ranks.use_device();
  });
}

int32_t untax_world_barrier(untax_world* world) {
  return guarded(world, [&] {
    require(world, "world");
    const untax::c::one_thread only(*world);
    world->ranks.barrier();
  });
}

int32_t untax_world_agree(untax_world* world, const char* what, const char* description) {
  return guarded(world, [&] {
    require(world, "world");
    require(what, "what");
    require(description, "description");
    const untax::c::one_thread only(*world);
    world->ranks.agree(what, description);
  });
}

int32_t untax_world_check(const untax_world* world) {
  return guarded(world, [&] {
    require(world, "world");
    world->ranks.check();
  });
}

int32_t untax_world_let_runs_follow(untax_world* world, void* stream) {
  return guarded(world, [&] {
    require(world, "world");
    untax::stream_ref on;
    on.handle = stream;
    untax::let_runs_follow(world->ranks, on);
  });
}

int32_t untax_world_allocate(untax_world* world, size_t bytes, const char* label, void** local) {
  return guarded(world, [&] {
    require(world, "world");
    require(local, "local");
    const untax::c::one_thread only(*world);
    const std::uint64_t number = world->ranks.next_object();
    const auto result =
        world->ranks.allocate<std::byte>(bytes, label == nullptr ? "memory of the caller" : label);
    const std::scoped_lock lock(world->allocations_mutex);
    world->allocations.emplace(result.local(), untax_world::allocation{result, number});
    *local = result.local();
  });
}

int32_t untax_world_free(untax_world* world, void* local) {
  return guarded(world, [&] {
    require(world, "world");
    const untax::c::one_thread only(*world);
    // The heap decides: it may refuse, and then the allocation still exists.
    world->ranks.free(untax::c::allocation_at(*world, local).memory);
    const std::scoped_lock lock(world->allocations_mutex);
    world->allocations.erase(local);
  });
}

int32_t untax_world_drop(untax_world* world, void* local) {
  return guarded(world, [&] {
    require(world, "world");
    const untax_world::allocation dropped = untax::c::allocation_at(*world, local);
    world->ranks.drop(dropped.number, std::make_shared<untax::c::dropped_memory>(
                                          world->ranks.stable_view(), dropped.memory));
    const std::scoped_lock lock(world->allocations_mutex);
    world->allocations.erase(local);
  });
}

int32_t untax_world_map(const untax_world* world, untax_mapping** mapping) {
  return guarded(world, [&] {
    require(world, "world");
    require(mapping, "mapping");
    *mapping = new untax_mapping{world->ranks.mapping()};
  });
}

void untax_mapping_release(untax_mapping* mapping) { delete mapping; }

int32_t untax_world_kernel_state(untax_world* world, untax_kernel_state* state) {
  return guarded(world, [&] {
    require(world, "world");
    require(state, "state");
    const std::size_t size = untax::c::taken(state, "untax_kernel_state").size;
    untax::world& w = world->ranks;
    const untax::device_control control =
        w.memory() == untax::memory_kind::cuda ? w.device_state() : w.state().kernel_view(w.rank());
    const untax_kernel_state answer{
        .size = size,
        .rank = control.rank,
        .ranks = control.ranks,
        .span = static_cast<int64_t>(w.heap().memory().layout().arena_span()),
        .records = control.records + untax::first_kernel_slot,
        .progress = control.progress + untax::first_kernel_slot,
        .first_slot = untax::first_kernel_slot,
        .slots = untax::kernel_slots,
        .host_stop = const_cast<std::uint64_t*>(control.host_stop),
        .stop = control.stop,
        .stop_span = static_cast<int64_t>(control.stop_span),
        .outcome = control.outcome,
        .limit_ns = std::chrono::nanoseconds(w.wait_limit()).count(),
        .clock_offset = control.clock_offset};
    std::memcpy(state, &answer, std::min(size, sizeof answer));
  });
}

int32_t untax_world_translate(const untax_world* world, const void* local, int32_t peer,
                              void** at_peer) {
  return guarded(world, [&] {
    require(world, "world");
    require(at_peer, "at_peer");
    *at_peer = world->ranks.translate(const_cast<void*>(local), peer);
  });
}
