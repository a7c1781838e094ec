#include "ops/collectives_common/planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>

#include <untax/core/error.hpp>
#include <untax/flow/control_block.hpp>

#include "ops/collectives_common/chunk_ring.hpp"
#include "ops/common/memory_need.hpp"

namespace untax {
namespace {

/// Chunks are aligned for vector loads.
constexpr std::int64_t alignment = 16;
/// The bytes of a chunk: enough that a signal costs little beside it, and few enough for the L2
/// cache.
constexpr std::int64_t usual_chunk_bytes = 128 << 10;
/// Smaller chunks would not be worth their signals when they are passed on.
constexpr std::int64_t least_relayed_bytes = 16 << 10;
constexpr int default_depth = 4;
constexpr std::int64_t most_chunk_bytes = std::int64_t{1} << 30;
constexpr int most_depth = 64;
/// A lane has three workers in fused_specialized.
constexpr int most_workers = wait_slots / 3 - 1;
/// More blocks than any GPU holds at once; the engine knows the real limit.
constexpr int most_asked_blocks = 4096;
/// From here on, the bytes that a second phase saves are worth its additional hop.
constexpr std::int64_t two_phase_bytes = 64 << 10;

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

class planner {
 public:
  planner(int world, int rank, const collective_need& need, const collective_options& options,
          memory_kind memory, int sharing)
      : world_(world),
        rank_(rank),
        need_(need),
        options_(options),
        on_device_(memory == memory_kind::cuda),
        sharing_(sharing) {}

  planned_collective make() {
    require("workers", options_.workers, on_device_ ? most_asked_blocks : most_workers);
    require("chunk_bytes", options_.chunk_bytes, most_chunk_bytes);
    require("depth", options_.depth, most_depth);
    require("serves", options_.serves, most_workers);
    require("keepers", options_.keepers, on_device_ ? most_asked_blocks : most_workers);
    require("phases", options_.phases, need_.can_have_two_phases ? 2 : 1);
    collective_plan& plan = made_.plan;
    plan.world = world_;
    plan.rank = rank_;
    if (on_device_) options_ = device_choice(world_, need_, options_, sharing_);
    plan.how = options_.how == pattern::automatic ? pattern::fused_sequential : options_.how;
    const bool has_it = plan.how == pattern::bulk_synchronous ||
                        plan.how == pattern::fused_sequential ||
                        plan.how == pattern::fused_specialized;
    if (!has_it) {
      refuse(
          fmt::format("has no pattern {}; it has bulk_synchronous, fused_sequential and "
                      "fused_specialized",
                      name_of(plan.how)));
    }
    plan.serves = std::max(options_.serves, 1);
    choose_wire();
    choose_way();
    plan.workers =
        options_.workers > 0 ? options_.workers : std::clamp(cores() / world_, 1, most_workers);
    const std::string why = choose_phases();
    cut();
    made_.explanation = fmt::format(
        "{}: {}, {}, {} {}{}, {} {}, chunks of {} elements, {}{}", need_.name, name_of(plan.how),
        name_of(plan.wire), plan.phases, plan.phases == 1 ? "phase" : "phases", why, plan.workers,
        on_device_ ? "blocks" : "workers", plan.chunk, way_of(plan),
        plan.serves > 1 ? fmt::format(", {} lanes a taker", plan.serves) : "");
    return std::move(made_);
  }

 private:
  void require(std::string_view what, std::int64_t value, std::int64_t most) const {
    if (value >= 0 && value <= most) return;
    refuse(fmt::format("option {} is {}; it has to be between 0 (untax chooses) and {}", what,
                       value, most));
  }
  [[noreturn]] void refuse(const std::string& text) const {
    throw error(errc::invalid_argument, fmt::format("rank {}: {}: {}", rank_, need_.name, text));
  }

  void choose_wire() {
    collective_plan& plan = made_.plan;
    plan.wire = options_.wire == wire_kind::automatic ? wire_kind::stores : options_.wire;
    if (!on_device_ && plan.wire != wire_kind::stores) {
      refuse(
          fmt::format("goes by {} between GPUs only; this world's heaps lie in memory of the "
                      "host",
                      name_of(plan.wire)));
    }
    if (plan.wire != wire_kind::packets) return;
    if (plan.how != pattern::fused_sequential)
      refuse(fmt::format("goes by packets as fused_sequential only, not {}", name_of(plan.how)));
    if (options_.phases > need_.packet_phases)
      refuse(fmt::format("goes by packets in one phase only, not in {}", options_.phases));
  }

  /// Packets never go directly: their own rooms cost less than waiting for permission.
  void choose_way() {
    collective_plan& plan = made_.plan;
    plan.direct = options_.direct && plan.wire != wire_kind::packets;
    if (plan.direct && options_.inputs == input_path::rooms && need_.by_peers != touched::result) {
      plan.pushes = need_.by_peers == touched::both && options_.phases != 1 && world_ > 1;
      plan.direct = plan.pushes;
    }
    if (plan.direct && need_.by_peers == touched::result) plan.keepers = options_.keepers;
    if (!plan.direct || plan.how == pattern::fused_sequential) return;
    refuse(fmt::format("goes directly as fused_sequential only, not {}", name_of(plan.how)));
  }

  std::string choose_phases() {
    int& phases = made_.plan.phases;
    if (!need_.can_have_two_phases || world_ == 1) {
      phases = 1;
      return "";
    }
    phases = options_.phases;
    if (phases > 0) return " (as asked)";
    if (made_.plan.direct && need_.by_peers == touched::both) {
      phases = 2;
      return " (directly in place is possible with two only)";
    }
    const std::int64_t bytes = need_.total * size();
    phases = world_ > 2 && bytes >= two_phase_bytes ? 2 : 1;
    return fmt::format(" (chosen for {} bytes and {} ranks; two from {} bytes and 3 ranks on)",
                       bytes, world_, two_phase_bytes);
  }

  void cut() {
    collective_plan& plan = made_.plan;
    const std::int64_t part = plan.phases == 2 ? need_.largest : need_.largest_one;
    // On the host there are programs for the count of each run.
    if (on_device_ && options_.varying_count) plan.most = std::max<std::int64_t>(part, 1);
    if (options_.chunk_bytes > 0) {
      plan.chunk = std::max<std::int64_t>(1, options_.chunk_bytes / size());
    } else {
      const std::int64_t share =
          round_up(ceil_div<std::int64_t>(part, plan.workers), alignment / size());
      plan.chunk = std::clamp<std::int64_t>(share, alignment / size(), usual_chunk_bytes / size());
    }
    const bool roomless = plan.direct && !plan.pushes;
    if (roomless && options_.chunk_bytes == 0) plan.chunk = direct_chunk(part);
    plan.chunk = std::min(plan.chunk, std::max<std::int64_t>(part, 1));
    if (plan.wire == wire_kind::packets) {
      plan.chunk = std::max<std::int64_t>(part, 1);
      plan.depth = 2;
      return;
    }
    // Rooms are adjacent, and vectors are loaded from all of them.
    if (on_device_ && options_.chunk_bytes % alignment == 0)
      plan.chunk = round_up<std::int64_t>(plan.chunk, alignment / size());
    const std::int64_t of_part = ceil_div(part, plan.chunk);
    // Counters have int numbers: up to 4 for each chunk of each rank.
    if (of_part > std::numeric_limits<std::int32_t>::max() / (4 * std::int64_t{world_})) {
      refuse(
          fmt::format("chunks of {} elements cut a part of {} into too many; option chunk_bytes "
                      "has to be larger",
                      plan.chunk, part));
    }
    const std::int64_t chunks = ceil_div<std::int64_t>(of_part, plan.workers);
    // Two epochs fit, each in rooms of its own, which is required if no worker waits for a room
    // (bulk).
    const int two_epochs = static_cast<int>(std::max<std::int64_t>(2 * chunks, 1));
    const int asked = options_.depth > 0 ? options_.depth : default_depth;
    plan.depth = is_bulk(plan.how) ? two_epochs : std::min(asked, two_epochs);
    if (plan.most > 0 && !is_bulk(plan.how)) plan.depth = depth_of_any_count(chunks, asked);
    if (roomless) plan.depth = 1;
  }

  /// Runs of any count alternate between two sets of rooms, so more rooms than a run has chunks are
  /// never used. All rooms together have not many more bytes than the exchanged data, or than rooms
  /// of four chunks for each of four ranks.
  [[nodiscard]] int depth_of_any_count(std::int64_t chunks, int asked) const {
    constexpr std::int64_t most_beside = std::int64_t{32} << 20;
    constexpr std::int64_t most_bytes = std::int64_t{384} << 20;
    const collective_plan& plan = made_.plan;
    const std::int64_t each = std::int64_t{2} * (plan.pushes ? 1 : plan.phases) * plan.workers *
                              plan.world * plan.chunk * size();
    const std::int64_t most = std::min(2 * need_.total * size() + most_beside, most_bytes);
    // With a single room, a sender would wait for each chunk to be read.
    int depth =
        static_cast<int>(std::clamp<std::int64_t>(std::min<std::int64_t>(chunks, asked), 1, 2));
    while (depth < chunks && 2 * depth <= asked && 2 * depth * each <= most) depth *= 2;
    return depth;
  }

  /// Without rooms a worker's share is contiguous. Splitting it gains something only if other ranks
  /// pass on the chunks that have arrived.
  [[nodiscard]] std::int64_t direct_chunk(std::int64_t part) const {
    if (made_.plan.phases == 1) return most_chunk_bytes / size();
    constexpr std::int64_t parts = 8;
    const std::int64_t share = ceil_div<std::int64_t>(part * size(), made_.plan.workers);
    const std::int64_t wanted = round_up<std::int64_t>(ceil_div(share, parts), alignment);
    return std::clamp(wanted, least_relayed_bytes, usual_chunk_bytes) / size();
  }

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(size_of(need_.type)); }

  int world_;
  int rank_;
  const collective_need& need_;
  collective_options options_;
  bool on_device_;
  int sharing_;
  planned_collective made_;
};

}  // namespace

std::string way_of(const collective_plan& plan) {
  if (plan.keepers > 0) return fmt::format("direct, without rooms, {} keepers", plan.keepers);
  if (plan.direct && !plan.pushes) return "direct, without rooms";
  return fmt::format("{}{} rooms in turn", plan.pushes ? "direct, inputs through " : "",
                     plan.depth);
}

std::string fields_of(const collective_plan& plan) {
  // All fields but the rank: a new one cannot be left out.
  const auto& [world, rank, how, wire, phases, workers, chunk, depth, direct, pushes, keepers,
               serves, most] = plan;
  static_cast<void>(rank);
  return fmt::format(
      "ranks {}, pattern {}, wire {}, phases {}, workers {}, chunk {}, depth {}, direct {}, pushes "
      "{}, keepers {}, serves {}{}",
      world, name_of(how), name_of(wire), phases, workers, chunk, depth, direct, pushes, keepers,
      serves, most > 0 ? fmt::format(", any parts up to {}", most) : "");
}

planned_collective plan_collective(int world, int rank, const collective_need& need,
                                   const collective_options& options, memory_kind memory,
                                   int sharing) {
  return planner(world, rank, need, options, memory, sharing).make();
}

std::size_t heap_for(const collective_plan& plan, dtype type) noexcept {
  constexpr std::size_t slack = std::size_t{1} << 16;
  const auto flags =
      2 * static_cast<std::size_t>(plan.workers) * static_cast<std::size_t>(plan.world);
  const std::size_t flag_bytes = flags * sizeof(std::uint64_t) + slack;
  if (plan.direct && !plan.pushes) return flag_bytes;
  const auto rings = static_cast<std::size_t>(plan.pushes ? 1 : plan.phases);
  const auto rooms = rings * static_cast<std::size_t>(chunk_ring::rows_for(plan));
  constexpr std::size_t counters_of_a_room = 2 * sizeof(std::uint64_t);
  if (plan.wire == wire_kind::packets) {
    // Two sets of messages from each rank: packets, half of whose bytes are the flag, or the words
    // of a reduction. Behind the words each block has one without data.
    constexpr std::size_t packet = 16;
    const auto ranks = static_cast<std::size_t>(plan.world);
    const auto blocks = static_cast<std::size_t>(plan.workers);
    const std::size_t data = static_cast<std::size_t>(plan.chunk) * size_of(type);
    const std::size_t message = std::max(round_up<std::size_t>(2 * data, packet),
                                         round_up<std::size_t>(data, packet) + blocks * packet);
    return (2 * static_cast<std::size_t>(plan.phases) * message + blocks * counters_of_a_room) *
               ranks +
           slack;
  }
  const double bytes_of_room =
      static_cast<double>(plan.chunk) * static_cast<double>(size_of(type)) + counters_of_a_room;
  return whole_bytes(static_cast<double>(rooms) * bytes_of_room + static_cast<double>(flag_bytes));
}

void require_count(std::string_view name, int rank, std::string_view what, std::int64_t count) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  if (count >= 0 && count < most) return;
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {}: {} is {}; it has to be between 0 and {}", rank, name, what,
                          count, most - 1));
}

}  // namespace untax
