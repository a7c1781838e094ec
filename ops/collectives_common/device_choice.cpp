#include "ops/collectives_common/device_choice.hpp"

#include <algorithm>

#include "engines/sm90/packets/layout.hpp"

namespace untax {
namespace {

// Where one way becomes better than another on 4 H200 over NVLink, as `untax bench collectives
// --sweep` measured it there. Bytes are those that a rank sends, which makes what was measured with
// 4 ranks a fair guess for others.

/// Beyond, packets, which are twice the bytes, take longer than rooms do.
constexpr std::int64_t most_packet_bytes = std::int64_t{3} << 20;
/// The same where there are no rooms, and so no second copy at the receiver.
constexpr std::int64_t most_packet_bytes_beside_direct = std::int64_t{2} << 20;
/// The same for a broadcast, whose root alone sends.
constexpr std::int64_t most_packet_bytes_of_broadcast = std::int64_t{768} << 10;
/// Beyond, all_reduce in one phase, which sends W / 2 times what it does in two, takes longer than
/// the second phase's way.
constexpr std::int64_t most_one_phase_bytes = std::int64_t{384} << 10;
/// The same for a broadcast.
constexpr std::int64_t most_one_phase_broadcast_bytes = std::int64_t{3} << 20;
/// Chunks of rooms: what is received is passed on the sooner the smaller they are; what is not, and
/// is much, is signalled the less often the larger they are.
constexpr std::int64_t chunk_bytes = std::int64_t{32} << 10;
constexpr std::int64_t large_chunk_bytes = std::int64_t{512} << 10;
constexpr std::int64_t least_bytes_in_large_chunks = std::int64_t{72} << 20;
constexpr std::int64_t least_chunk_bytes = std::int64_t{4} << 10;
constexpr int usual_depth = 4;
/// All multiprocessors of an H200 but four, which are left to others.
constexpr int most_blocks = 128;
/// Copy engines fill the link with fewer, and so do blocks that only send.
constexpr int half_of_blocks = 64;
constexpr int blocks_of_broadcast = 32;

class chooser {
 public:
  chooser(int world, const collective_need& need, const collective_options& asked)
      : world_(world), need_(need), made_(asked) {}

  collective_options make() {
    const bool open_pattern = made_.how == pattern::automatic;
    if (open_pattern) made_.how = pattern::fused_sequential;
    const bool open = made_.phases == 0;
    choose_phases();
    choose_wire();
    // Only one rank sends, and it has nothing to receive.
    if (open_pattern && is_broadcast() && made_.phases == 1 && made_.wire == wire_kind::stores &&
        !made_.direct) {
      made_.how = pattern::fused_specialized;
      if (made_.workers == 0) made_.workers = blocks_of_broadcast;
    }
    const bool direct = made_.direct && made_.wire != wire_kind::packets;
    // In one phase inputs are read until the end, so it could not be in place.
    if (open && direct && need_.by_peers == touched::both && world_ > 1) made_.phases = 2;
    choose_cut();
    return made_;
  }

 private:
  [[nodiscard]] std::int64_t bytes(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(size_of(need_.type));
  }
  /// What a rank sends, in one phase or in each of two.
  [[nodiscard]] std::int64_t sent(int phases) const {
    return bytes(phases == 1 ? need_.largest_one : need_.largest) * (world_ - 1);
  }
  /// Two phases, of which the second combines nothing.
  [[nodiscard]] bool is_broadcast() const {
    return need_.can_have_two_phases && need_.packet_phases == 1;
  }
  [[nodiscard]] bool asks_for_rooms() const {
    return made_.how != pattern::fused_sequential || made_.wire == wire_kind::stores ||
           made_.wire == wire_kind::bulk;
  }

  void choose_phases() {
    if (made_.phases != 0) return;
    const std::int64_t most_one_phase =
        is_broadcast() ? most_one_phase_broadcast_bytes : most_one_phase_bytes;
    const bool two = need_.can_have_two_phases && world_ > 2 && sent(1) > most_one_phase &&
                     (made_.wire != wire_kind::packets || need_.packet_phases == 2);
    made_.phases = two ? 2 : 1;
  }

  void choose_wire() {
    if (made_.wire != wire_kind::automatic) return;
    const std::int64_t most = is_broadcast() ? most_packet_bytes_of_broadcast
                              : made_.direct ? most_packet_bytes_beside_direct
                                             : most_packet_bytes;
    const bool packets = !asks_for_rooms() && made_.phases <= need_.packet_phases &&
                         made_.phases * sent(made_.phases) <= most;
    made_.wire = packets ? wire_kind::packets : wire_kind::stores;
  }

  void choose_cut() {
    const std::int64_t part = bytes(made_.phases == 1 ? need_.largest_one : need_.largest);
    if (made_.wire == wire_kind::packets) {
      // A packet of each message a thread.
      constexpr std::int64_t block_bytes = sm90::packet_threads * 8;
      if (made_.workers == 0) made_.workers = blocks_for(part, block_bytes, most_blocks);
      return;
    }
    const bool specialized = made_.how == pattern::fused_specialized;
    const int most = made_.wire == wire_kind::bulk || specialized ? half_of_blocks : most_blocks;
    if (made_.workers == 0) made_.workers = blocks_for(part, least_chunk_bytes, most);
    const std::int64_t share = ceil_div<std::int64_t>(part, made_.workers);
    if (made_.direct) {
      // What is reduced is read from peers, then passed on to them: seldom, since the link takes
      // its time to turn.
      if (made_.chunk_bytes == 0 && made_.phases == 2 && need_.by_peers == touched::both)
        made_.chunk_bytes =
            std::clamp<std::int64_t>(round_up<std::int64_t>(share, 512), 512, large_chunk_bytes);
      return;
    }
    if (made_.chunk_bytes == 0) {
      const bool large =
          made_.phases == 1 && !specialized && sent(1) >= least_bytes_in_large_chunks;
      made_.chunk_bytes = std::clamp<std::int64_t>(round_up<std::int64_t>(share, 512), 512,
                                                   large ? large_chunk_bytes : chunk_bytes);
    }
    if (made_.depth == 0) made_.depth = usual_depth;
  }
  static int blocks_for(std::int64_t bytes, std::int64_t each, int most) {
    return static_cast<int>(std::clamp<std::int64_t>(ceil_div(bytes, each), 1, most));
  }

  int world_;
  const collective_need& need_;
  collective_options made_;
};

}  // namespace

collective_options device_choice(int world, const collective_need& need,
                                 const collective_options& asked) {
  return chooser(world, need, asked).make();
}

}  // namespace untax
