#include "ops/collectives_common/device_choice.hpp"

#include <algorithm>

#include "engines/sm90/packets/layout.hpp"

namespace untax {
namespace {

// From a model of H200 over NVLink, where a rank sends 350 GB/s, a signal takes 1.3 us, and a step
// with rooms (look at the room, move, release, be seen) about 3 us more than one by packets, which
// in turn are twice the bytes. Bytes are those that a rank sends.

/// 3 us of the link: beyond, a second copy of the bytes takes longer than rooms do.
constexpr std::int64_t most_packet_bytes = std::int64_t{1} << 20;
/// The same where there are no rooms, and so no second copy at the receiver.
constexpr std::int64_t most_packet_bytes_beside_direct = std::int64_t{512} << 10;
/// 2 us of the link, in packets: beyond, all_reduce in one phase, which sends W / 2 times what it
/// does in two, takes longer than the second phase's way.
constexpr std::int64_t most_one_phase_bytes = std::int64_t{384} << 10;
/// Rooms: a block moves 8 GB/s at least with chunks of this size, each on its own.
constexpr std::int64_t chunk_bytes = std::int64_t{32} << 10;
constexpr std::int64_t least_chunk_bytes = std::int64_t{4} << 10;
constexpr int usual_depth = 4;
/// All multiprocessors of an H200 but four, which are left to others.
constexpr int most_blocks = 128;
/// Copy engines fill the link with fewer.
constexpr int most_bulk_blocks = 64;

class chooser {
 public:
  chooser(int world, const collective_need& need, const collective_options& asked)
      : world_(world), need_(need), made_(asked) {}

  collective_options make() {
    if (made_.how == pattern::automatic) made_.how = pattern::fused_sequential;
    const bool open = made_.phases == 0;
    choose_phases();
    choose_wire();
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
  [[nodiscard]] bool asks_for_rooms() const {
    return made_.how != pattern::fused_sequential || made_.wire == wire_kind::stores ||
           made_.wire == wire_kind::bulk;
  }

  void choose_phases() {
    if (made_.phases != 0) return;
    const bool two = need_.can_have_two_phases && world_ > 2 && sent(1) > most_one_phase_bytes &&
                     (made_.wire != wire_kind::packets || need_.packet_phases == 2);
    made_.phases = two ? 2 : 1;
  }

  void choose_wire() {
    if (made_.wire != wire_kind::automatic) return;
    const bool packets = !asks_for_rooms() && made_.phases <= need_.packet_phases &&
                         made_.phases * sent(made_.phases) <=
                             (made_.direct ? most_packet_bytes_beside_direct : most_packet_bytes);
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
    const int most = made_.wire == wire_kind::bulk || specialized ? most_bulk_blocks : most_blocks;
    if (made_.workers == 0) made_.workers = blocks_for(part, least_chunk_bytes, most);
    if (made_.direct) return;
    if (made_.chunk_bytes == 0) {
      const std::int64_t share = ceil_div<std::int64_t>(part, made_.workers);
      made_.chunk_bytes =
          std::clamp<std::int64_t>(round_up<std::int64_t>(share, 512), 512, chunk_bytes);
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
