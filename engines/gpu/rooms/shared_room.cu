#include "engines/gpu/rooms/shared_room.hpp"

#include <algorithm>

#include <cuda/atomic>

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax::gpu {
namespace {

constexpr int most_blocks = 32;
constexpr int hand_over_threads = 512;

/// Words in this GPU's memory.
struct room_state {
  std::uint64_t last = 0;     ///< `owner_word` of the plan that had the room last; 0: none
  std::uint64_t arrived = 0;  ///< blocks of this launch that have cleared their share
  std::uint64_t meetings = 0;
};

[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint64_t owner_word(std::uint64_t plan,
                                                                   room_content content) {
  return plan << 3U | static_cast<std::uint64_t>(content);
}

struct hand_over_arguments {
  run_arguments run;  ///< `inbox` is the room, `counters` has one word for each rank
  room_state* state = nullptr;
  std::uint64_t plan = 0;
  room_content content = room_content::opened;
  std::int64_t words = 0;       ///< of 16 bytes, in the room
  std::int64_t plan_words = 0;  ///< words that belong to the plan

  /// The number of words that have to be zero and may not be.
  [[nodiscard]] __device__ std::int64_t dirty_words(std::uint64_t last) const {
    if (content == room_content::packets) return plan_words;
    const bool zeros = (last & 7U) == static_cast<std::uint64_t>(room_content::words);
    return content == room_content::words && !zeros ? words : 0;
  }
};

/// The flag by which rank `from` tells rank `to` that it has ended all earlier runs.
[[nodiscard]] __device__ room flag_of(int from, int to, std::uint64_t meeting) {
  room r;
  r.producer = from;
  r.consumer = to;
  r.number = r.ready = from;
  r.use = meeting;
  return r;
}

/// Called by a warp. Returns false if the wait failed, which the host reports.
[[nodiscard]] __device__ bool meet_peers(const run_arguments& run, int world,
                                         std::uint64_t meeting) {
  const int rank = run.world.rank;
  const warp_channel channel(run, 0);
  channel.publish(world - 1, [&](int i) {
    return flag_of(rank, receiver_at_hop(rank, i + 1, world), meeting);
  });
  return channel.acquire(
      world - 1, [&](int i) { return flag_of(source_at_hop(rank, i + 1, world), rank, meeting); });
}

/// Whether this block is the last one of a launch to call this function. The writes of the other
/// blocks before their calls are then visible. All threads of a block call this.
[[nodiscard]] __device__ bool arrives_last(std::uint64_t& arrived) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::uint64_t before =
        cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(arrived).fetch_add(
            1, cuda::memory_order_acq_rel);
    is_last = before + 1 == gridDim.x;
  }
  __syncthreads();
  return is_last;
}

__global__ void hand_over(const __grid_constant__ hand_over_arguments given, int world) {
  griddepcontrol_wait();
  griddepcontrol_launch_dependents();
  if (given.run.launch < 0) return;
  room_state& state = *given.state;
  const std::uint64_t last = state.last;
  const std::uint64_t now = owner_word(given.plan, given.content);
  if (last == now) return;
  auto* const room_words = reinterpret_cast<uint4*>(given.run.inbox.local());
  const std::int64_t dirty = given.dirty_words(last);
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < dirty;
       i += std::int64_t{gridDim.x} * blockDim.x)
    room_words[i] = make_uint4(0, 0, 0, 0);
  // The last block that has cleared its share meets the peers for all of them, which end.
  if (!arrives_last(state.arrived) || threadIdx.x >= 32) return;
  const std::uint64_t meeting = state.meetings + 1;
  if (!left_out(mutant::room_hand_over) && !meet_peers(given.run, world, meeting)) return;
  if (threadIdx.x != 0) return;
  state.meetings = meeting;
  state.arrived = 0;
  state.last = now;
}

/// The capture that `stream` is part of; 0: none.
unsigned long long capture_of(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return 0;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  require(cudaStreamGetCaptureInfo(stream, &status, &id), "cannot ask about a capture");
  return status == cudaStreamCaptureStatusNone ? 0 : id;
}

}  // namespace

shared_room::shared_room(world& w, const std::string& name, std::size_t bytes)
    : launcher_(w, name, {.side = 1}) {
  memory_ = launcher_.symmetric_memory<std::byte>(bytes, "shared inbox");
  run_ = launcher_.arguments(1, hand_over_threads);
  run_.inbox = memory_;
  run_.counters = launcher_.symmetric_memory<std::uint64_t>(static_cast<std::size_t>(w.size()),
                                                            "hand-over counters");
  static_assert(sizeof(room_state) == 3 * sizeof(std::uint64_t));
  state_ = launcher_.own_words(3);
  launcher_.dry_run([&](cudaStream_t on) {
    run_.launch = -1;
    launch(0, room_content::opened, 0, on);
    run_.launch = 0;
  });
}

bool shared_room::is_known(std::uint64_t plan, unsigned long long capture) const noexcept {
  if (plan != last_plan_ || capture != last_capture_) return false;
  // Between runs outside of captures, graphs with runs of other plans may have been replayed.
  return capture != 0 || !was_captured_;
}

void shared_room::enter(std::uint64_t plan, room_content content, std::size_t bytes, whole_run& run,
                        cudaStream_t on) {
  const unsigned long long capture = capture_of(on);
  const bool changes_hands = others_ > 0 && plans_ > 1;
  if (changes_hands && !is_known(plan, capture)) run([&] { launch(plan, content, bytes, on); });
  // Without a hand-over kernel, the device does not know of this run.
  last_plan_ = changes_hands ? plan : 0;
  last_capture_ = capture;
  was_captured_ = was_captured_ || capture != 0;
}

void shared_room::launch(std::uint64_t plan, room_content content, std::size_t bytes,
                         cudaStream_t on) const {
  const world& w = launcher_.ranks();
  hand_over_arguments given{run_,
                            reinterpret_cast<room_state*>(state_),
                            plan,
                            content,
                            static_cast<std::int64_t>(memory_.size() / sizeof(uint4)),
                            static_cast<std::int64_t>(bytes / sizeof(uint4))};
  start_pdl(launcher_.starts_early(), hand_over, std::min(most_blocks, num_sms_of(w)),
            hand_over_threads, on, "cannot hand a room over", given, w.size());
}

plan_room room_pool::take(room_pool* pool, operator_launcher& own, std::size_t bytes,
                          room_content content) {
  plan_room taken;
  const std::size_t whole = round_up(std::max<std::size_t>(bytes, 16), std::size_t{16});
  if (pool == nullptr || whole <= most_own_room) {
    taken.memory_ = own.symmetric_memory<std::byte>(whole, "inbox");
    return taken;
  }
  taken.shared_ = pool->room_of(whole);
  taken.memory_ = taken.shared_->memory();
  taken.plan_ = taken.shared_->add(content);
  taken.content_ = content;
  taken.bytes_ = whole;
  return taken;
}

std::shared_ptr<shared_room> room_pool::room_of(std::size_t bytes) {
  std::erase_if(rooms_, [](const auto& known) { return known.expired(); });
  for (const auto& known : rooms_) {
    std::shared_ptr<shared_room> one = known.lock();
    if (one->memory().size() >= bytes) return one;
  }
  auto made = std::make_shared<shared_room>(*world_, name_, shared_room_bytes(bytes));
  rooms_.push_back(made);
  return made;
}

std::shared_ptr<const partial_sums> room_pool::partials(std::size_t bytes) {
  auto known = partials_.lock();
  if (known && known->bytes() >= bytes) return known;
  const auto larger = std::make_shared<const partial_sums>(bytes);
  partials_ = larger;
  return larger;
}
std::shared_ptr<const partial_sums> partials_of(room_pool* pool, std::size_t bytes) {
  return pool != nullptr ? pool->partials(bytes) : std::make_shared<const partial_sums>(bytes);
}

std::shared_ptr<room_pool> make_room_pool(world& w, std::string_view name) {
  return std::make_shared<room_pool>(w.stable_view(), name);
}

}  // namespace untax::gpu
