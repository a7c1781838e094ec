#include "ops/collectives_common/planning.hpp"

#include <algorithm>

#include "engines/gpu/packets/layout.hpp"

namespace untax {
namespace {

// Thresholds measured on 4 H200 over NVLink by `untax bench collectives --sweep`. They are in bytes
// that a rank sends, so that measurements with 4 ranks are a fair guess for other numbers.

/// Above this many bytes packets, which have twice the bytes, take longer than rooms.
constexpr std::int64_t most_packet_bytes = std::int64_t{3} << 20;
/// The same limit if there are no rooms, and so no second copy at the receiver.
constexpr std::int64_t most_packet_bytes_beside_direct = std::int64_t{1792} << 10;
/// The same limit for a broadcast in two phases, whose root alone sends.
constexpr std::int64_t most_packet_bytes_of_broadcast = std::int64_t{9} << 20;
/// Above this many bytes the rooms of words, of which every rank has two sets for each phase, would
/// take more memory than a collective may: twice its result and 64 MB.
constexpr std::int64_t most_word_bytes = std::int64_t{24} << 20;
/// The least bytes of a block that sends packets, up to `few_packet_blocks` blocks.
constexpr std::int64_t least_packet_bytes = 256;
constexpr int few_packet_blocks = 8;
/// Above this many bytes one phase takes longer than a second hop: in one phase all_reduce sends W
/// / 2 times the bytes of two phases, and the root of a broadcast W - 1 times.
constexpr std::int64_t most_one_phase_bytes = std::int64_t{384} << 10;
/// Above this many bytes the inputs of a direct all_reduce are pushed to the ranks that combine
/// them, since that is quicker than a pull.
constexpr std::int64_t most_read_bytes = std::int64_t{40} << 20;
/// Chunks in rooms. A chunk is read or passed on when it has arrived whole, and takes a signal.
constexpr std::int64_t chunk_bytes = std::int64_t{60} << 10;
constexpr std::int64_t large_chunk_bytes = std::int64_t{120} << 10;
/// The fewest chunks of a lane for which large chunks pay.
constexpr std::int64_t enough_chunks = 16;
/// Chunks that are read from peers, combined and passed on. They are large, since the link takes
/// time to change its direction.
constexpr std::int64_t turned_bytes = std::int64_t{512} << 10;
constexpr std::int64_t least_chunk_bytes = std::int64_t{4} << 10;
/// Chunks of a share that is passed on without rooms. The smaller they are, the fewer bytes remain
/// to be passed on when the root has sent all.
constexpr std::int64_t relayed_bytes = std::int64_t{15} << 10;
constexpr int usual_depth = 4;
/// All multiprocessors of an H200 but four, which remain for other kernels.
constexpr int most_blocks = 128;
/// TMA fills the link with fewer blocks, and so do blocks that only send, or only read from peers.
constexpr int half_of_blocks = 64;
/// Keepers only copy data that stay at a rank: this number of blocks keeps up with the link.
constexpr int keeping_blocks = 16;
constexpr int keeping_blocks_of_root = 32;
/// A lane with fewer bytes to keep copies them while it waits for permission.
constexpr std::int64_t least_kept_bytes = std::int64_t{8} << 20;

class chooser {
 public:
  chooser(int world, const collective_need& need, const collective_options& asked, int sharing)
      : world_(world), need_(need), made_(asked), sharing_(sharing) {}

  collective_options make() {
    const bool open_pattern = made_.how == pattern::automatic;
    if (open_pattern) made_.how = pattern::fused_sequential;
    const bool open = made_.phases == 0;
    choose_phases();
    choose_wire();
    // In one phase inputs are read until the end, so the result could not be in place.
    if (open && goes_direct() && need_.by_peers == touched::both && world_ > 1) made_.phases = 2;
    choose_inputs();
    if (open_pattern && made_.wire == wire_kind::stores && can_specialize())
      made_.how = pattern::fused_specialized;
    choose_cut();
    return made_;
  }

 private:
  [[nodiscard]] std::int64_t bytes(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(size_of(need_.type));
  }
  /// The bytes that a rank sends, in one phase or in each of two.
  [[nodiscard]] std::int64_t sent(int phases) const {
    return bytes(phases == 1 ? need_.largest_one : need_.largest) * (world_ - 1);
  }
  /// Whether there are two phases, of which neither combines anything.
  [[nodiscard]] bool is_broadcast() const {
    return need_.can_have_two_phases && need_.by_peers == touched::result;
  }
  /// Whether data are combined, so that packets are words.
  [[nodiscard]] bool reduces() const { return need_.by_peers != touched::result; }
  /// Whether the pattern needs rooms. Patterns that the options name are not chosen here.
  [[nodiscard]] bool asks_for_rooms() const { return made_.how != pattern::fused_sequential; }

  [[nodiscard]] bool is_specialized() const { return made_.how == pattern::fused_specialized; }
  [[nodiscard]] bool goes_direct() const {
    return made_.direct && made_.wire != wire_kind::packets;
  }
  /// Whether there are no rooms at all.
  [[nodiscard]] bool is_roomless() const {
    return goes_direct() &&
           (need_.by_peers == touched::result || made_.inputs == input_path::in_place);
  }

  /// Whether all data goes through rooms. Then a multiprocessor that copies out of rooms should not
  /// send, too: its stores would wait behind those to peers, which wait for the link.
  [[nodiscard]] bool can_specialize() const {
    const bool reduces_everywhere = need_.by_peers == touched::both;
    // The result could not be in place any more.
    if (reduces_everywhere && made_.phases == 1) return false;
    const bool inputs_alone = need_.by_peers == touched::input && made_.inputs == input_path::rooms;
    return world_ > 1 && (!goes_direct() || inputs_alone);
  }

  void choose_phases() {
    if (made_.phases != 0) return;
    const bool two = need_.can_have_two_phases && world_ > 2 && sent(1) > most_one_phase_bytes &&
                     (made_.wire != wire_kind::packets || need_.packet_phases == 2);
    made_.phases = two ? 2 : 1;
  }

  void choose_wire() {
    if (made_.wire != wire_kind::automatic) return;
    const std::int64_t most = reduces()                             ? most_word_bytes
                              : is_broadcast() && made_.phases == 2 ? most_packet_bytes_of_broadcast
                              : made_.direct ? most_packet_bytes_beside_direct
                                             : most_packet_bytes;
    // A single rank sends nothing, but its packets would have rooms for everything.
    const bool packets = world_ > 1 && !asks_for_rooms() && made_.phases <= need_.packet_phases &&
                         made_.phases * sent(made_.phases) <= most;
    made_.wire = packets ? wire_kind::packets : wire_kind::stores;
  }

  void choose_inputs() {
    if (made_.inputs != input_path::automatic) return;
    const bool sends = need_.by_peers == touched::both && sent(2) > most_read_bytes;
    made_.inputs = sends ? input_path::rooms : input_path::in_place;
  }

  void choose_cut() {
    const std::int64_t part = bytes(made_.phases == 1 ? need_.largest_one : need_.largest);
    if (made_.wire == wire_kind::packets) {
      if (made_.workers > 0) return;
      // Each thread has a packet of each message. A few blocks are used before a block gets many
      // warps.
      const int few = blocks_for(part, least_packet_bytes, few_packet_blocks);
      const std::int64_t whole = reduces() ? gpu::reduction_threads * 16 : gpu::packet_threads * 8;
      made_.workers = std::max(few, blocks_for(part, whole, part_of(most_blocks)));
      return;
    }
    const bool reads = is_roomless() && need_.by_peers != touched::result;
    const bool few = made_.wire == wire_kind::bulk || reads;
    choose_keepers();
    if (made_.workers == 0) {
      const int most = is_specialized() ? specialized_lanes()
                       : few            ? part_of(half_of_blocks)
                                        : part_of(most_blocks) - made_.keepers;
      made_.workers = blocks_for(part, least_chunk_bytes, most);
    }
    const std::int64_t share = ceil_div<std::int64_t>(part, made_.workers);
    if (is_roomless()) {
      // In chunks, so that worker warps stay together.
      if (made_.chunk_bytes == 0 && made_.phases == 1 && reads) made_.chunk_bytes = chunk_bytes;
      if (made_.chunk_bytes == 0 && made_.phases == 2 && need_.by_peers == touched::both)
        made_.chunk_bytes =
            std::clamp<std::int64_t>(round_up<std::int64_t>(share, 512), 512, turned_bytes);
      if (made_.chunk_bytes == 0 && made_.phases == 2 && is_broadcast())
        made_.chunk_bytes = even_cut(share, relayed_bytes);
      return;
    }
    if (made_.chunk_bytes == 0) {
      made_.chunk_bytes = even_cut(share, most_chunk_bytes(share));
    }
    if (made_.depth == 0) made_.depth = usual_depth;
  }
  [[nodiscard]] int specialized_lanes() const {
    const int serves = std::max(made_.serves, 1);
    return serves * part_of(most_blocks) / (serves * made_.phases + 1);
  }
  [[nodiscard]] std::int64_t most_chunk_bytes(std::int64_t share) const {
    if (goes_direct()) return large_chunk_bytes;
    return std::clamp(share / enough_chunks, chunk_bytes, large_chunk_bytes);
  }
  /// If the result is not in place, keepers also copy the data that stay at a rank.
  void choose_keepers() {
    if (!is_roomless() || need_.by_peers != touched::result || made_.keepers > 0) return;
    if (bytes(need_.largest) < least_kept_bytes) return;
    made_.keepers =
        part_of(is_broadcast() && made_.phases == 2 ? keeping_blocks_of_root : keeping_blocks);
  }
  /// The size of chunks of at most `most` bytes, all of equal size if possible.
  static std::int64_t even_cut(std::int64_t share, std::int64_t most) {
    const std::int64_t chunks = std::max<std::int64_t>(ceil_div(share, most), 1);
    return std::max<std::int64_t>(
        round_up<std::int64_t>(ceil_div<std::int64_t>(share, chunks), 512), 512);
  }
  /// At least one block, even if `most` is 0.
  static int blocks_for(std::int64_t bytes, std::int64_t each, int most) {
    return static_cast<int>(std::clamp<std::int64_t>(ceil_div(bytes, each), 1, std::max(most, 1)));
  }

  /// The share of `blocks` that this rank gets if ranks share a GPU.
  [[nodiscard]] int part_of(int blocks) const { return std::max(blocks / sharing_, 1); }

  int world_;
  const collective_need& need_;
  collective_options made_;
  int sharing_;
};

}  // namespace

collective_options device_choice(int world, const collective_need& need,
                                 const collective_options& asked, int sharing) {
  return chooser(world, need, asked, sharing).make();
}

}  // namespace untax
