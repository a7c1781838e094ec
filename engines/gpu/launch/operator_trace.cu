#include "engines/gpu/launch/operator_trace.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/world/trace_ids.hpp>

#include "engines/gpu/trace/clock.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax::gpu {
namespace {

/// Rings for all warps of the largest kernels, and a limit on the events of all rings: 16 MiB.
constexpr std::uint32_t most_rings = 4096;
constexpr std::size_t most_events = std::size_t{1} << 20;
/// If there are more calls, no call is reported.
constexpr std::size_t most_calls = std::size_t{1} << 16;

template <class T>
std::vector<T> copied_from(const T* from, std::size_t count) {
  std::vector<T> all(count);
  gpu::require(cudaMemcpy(all.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost),
               "cannot read what kernels noted");
  return all;
}

/// All ranks get the ids that rank 0 made.
trace_ids agreed_ids(world& w, const std::string& name) {
  const auto shared = w.allocate_owned_cleared<std::uint64_t>(2, name + " trace");
  if (w.rank() == 0) {
    const trace_ids mine = new_trace_ids(w);
    for (int peer = 0; peer < w.size(); ++peer)
      gpu::require(cudaMemcpy(shared->at(peer), &mine, sizeof mine, cudaMemcpyDefault),
                   "cannot name an operator for its trace");
  }
  w.barrier();
  trace_ids found;
  gpu::require(cudaMemcpy(&found, shared->local(), sizeof found, cudaMemcpyDefault),
               "cannot name an operator for its trace");
  return found;
}

traced_operator named(const trace_ids& ids, const std::string& name) {
  traced_operator what;
  what.id = ids.operator_id;
  what.world = ids.world_id;
  what.name = name;
  what.label = trace_label::current();
  return what;
}

thread_local signal_tap* tap_of_this_thread = nullptr;

}  // namespace

signal_taps::signal_taps(signal_tap& tap) { tap_of_this_thread = &tap; }
signal_taps::~signal_taps() { tap_of_this_thread = nullptr; }

lone_trace::lone_trace(const std::string& name, int threads) {
  if (kernels_are_traced && is_tracing()) trace_ = operator_trace::open_alone(name);
  if (trace_) given_ = trace_->launches(threads);
}

launch_trace lone_trace::begin_run(cudaStream_t stream) const {
  if (trace_) trace_->called(gpu::captures(stream));
  return given_;
}

std::shared_ptr<operator_trace> operator_trace::open(world& w, const std::string& name) {
  if (!is_tracing()) return nullptr;
  if (!kernels_are_traced) {
    throw error(errc::unsupported,
                fmt::format("rank {}: {}: a trace is being recorded, and kernels of this build "
                            "record nothing; build with -DUNTAX_KERNEL_TRACE=ON, or leave the "
                            "trace out",
                            w.rank(), name));
  }
  traced_operator what = named(agreed_ids(w, name), name);
  what.rank = w.rank();
  what.ranks = w.size();
  return added(std::move(what), w.device());
}

std::shared_ptr<operator_trace> operator_trace::open_alone(const std::string& name) {
  int device = 0;
  gpu::require(cudaGetDevice(&device), "there is no device to trace");
  const auto shared = added(named(new_trace_ids(), name), device);
  return {shared.get(), [shared](operator_trace* /*trace*/) { (void)cudaDeviceSynchronize(); }};
}

std::shared_ptr<operator_trace> operator_trace::added(traced_operator what, int device) {
  auto trace = std::make_shared<operator_trace>(std::move(what), device);
  add_source(trace);
  return {trace.get(), [trace](operator_trace* t) { forget_source(*t); }};
}

operator_trace::operator_trace(traced_operator what, int device)
    : what_(std::move(what)), device_(device) {
  (void)read_clock(device_);
  allocate();
}

void operator_trace::allocate() {
  rings_.count = most_rings;
  rings_.capacity = static_cast<std::uint32_t>(
      std::bit_floor(std::clamp<std::size_t>(trace_room(), 2, most_events / most_rings)));
  const std::size_t events = std::size_t{rings_.count} * rings_.capacity * sizeof(trace_event);
  const std::size_t places = std::size_t{ring_table::place_count} * sizeof(ring_place);
  auto* const all = static_cast<std::byte*>(
      memory_.allocate(events + places + 3 * sizeof(std::uint64_t), "a trace"));
  rings_.events = reinterpret_cast<trace_event*>(all);
  rings_.places = reinterpret_cast<ring_place*>(all + events);
  rings_.tap = tap_of_this_thread;
  rings_.tapped = reinterpret_cast<std::uint64_t*>(all + events + places);
  rings_.taken = reinterpret_cast<std::uint32_t*>(rings_.tapped + 2);
}

void operator_trace::know(const symmetric<std::uint64_t>& counters) {
  const int first =
      counters_.empty() ? 0 : counters_.back().first + static_cast<int>(counters_.back().count);
  counters_.push_back(
      {reinterpret_cast<std::uint64_t>(counters.local()), counters.span(), counters.size(), first});
}

launch_trace operator_trace::launches(int group_threads) {
  launch_trace given;
  rings_.group_threads = static_cast<std::uint32_t>(group_threads);
  const auto hand_over = [&](auto& to) {
    if constexpr (requires { to.rings; }) to.rings = rings_;
  };
  hand_over(given);
  return given;
}

void operator_trace::called(bool captured) {
  const std::scoped_lock lock(mutex_);
  captured_ = captured_ || captured || calls_.size() == most_calls;
  if (!captured_) calls_.push_back(static_cast<std::uint64_t>(host_memory::now()));
}

kernel_record operator_trace::copied() const {
  kernel_record all;
  all.rank = what_.rank;
  all.ranks = what_.ranks;
  all.counters = counters_;
  all.clock = read_clock(device_);
  const auto places = copied_from(rings_.places, ring_table::place_count);
  const std::uint32_t taken = copied_from(rings_.taken, 1).front();
  if (taken > rings_.count) all.without_ring = taken - rings_.count;
  const auto events =
      copied_from(rings_.events, std::size_t{std::min(taken, rings_.count)} * rings_.capacity);
  for (int i = 0; i < ring_table::place_count; ++i) {
    const ring_place& place = places[static_cast<std::size_t>(i)];
    if (place.ring == 0) continue;
    const std::size_t number = place.ring - 1;
    warp_ring ring;
    ring.warp = i % ring_table::most_warps;
    ring.block = i / ring_table::most_warps % ring_table::most_blocks;
    ring.group = i / ring_table::most_warps / ring_table::most_blocks;
    ring.noted = place.noted;
    const std::uint64_t first = ring.noted > rings_.capacity ? ring.noted - rings_.capacity : 0;
    for (std::uint64_t at = first; at < ring.noted; ++at)
      ring.events.push_back(events[number * rings_.capacity + at % rings_.capacity]);
    all.rings.push_back(std::move(ring));
  }
  const std::scoped_lock lock(mutex_);
  if (!captured_) all.calls = calls_;
  return all;
}

traced_operator operator_trace::collect() const {
  traced_operator all = what_;
  try {
    decode(copied(), all);
  } catch (const error&) {
    // After a failed kernel the device returns no data; the error was reported to the caller.
    return what_;
  }
  return all;
}

}  // namespace untax::gpu
