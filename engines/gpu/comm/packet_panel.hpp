#pragma once

#include <cstddef>

#include <untax/core/host_device.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/comm/moved_shard.hpp"
#include "engines/gpu/gemm/config.hpp"

namespace untax {

/// The layout of A, sharded by rows, in an inbox as packets of four elements (rma/packet.cuh), each
/// its own signal: k-block by k-block, and within a k-block row by row. A k-block that reaches
/// beyond k has no packets there.
struct packet_panel {
  static constexpr int elements = 4;
  static constexpr std::size_t bytes = 16;                ///< of a packet
  static constexpr int across = gpu::block_k / elements;  ///< packets per row of a k-block

  int rows = 0;
  int columns = 0;
  int in_set = 0;      ///< packets of a set of rooms
  int shard_rows = 1;  ///< of a full shard

  template <class Layout>
  [[nodiscard]] static constexpr packet_panel of(const Layout& how) noexcept {
    packet_panel panel;
    panel.rows = static_cast<int>(how.rows());
    panel.columns = static_cast<int>(how.inbox().cols);
    panel.in_set =
        ceil_div(panel.columns, gpu::block_k) * static_cast<int>(how.set_rows()) * across;
    panel.shard_rows = static_cast<int>(how.shard(0).size);
    return panel;
  }

  /// The index, in its set, of a row's packet that begins at `column`, a multiple of 4.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int at(int row, int column) const noexcept {
    return (column / gpu::block_k * rows + row) * across + column % gpu::block_k / elements;
  }
  /// The rank that sends a row.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int source_of(int row) const noexcept {
    return row / shard_rows;
  }
};

/// The packets of the rank's own shard that a thread sends: every n-th, so that the threads of a
/// warp, whose first number is a multiple of 32, send adjacent packets. This takes divisions, so it
/// is computed before any rank waits for the packets.
class packet_share {
 public:
  packet_share() = default;
  UNTAX_HOST_DEVICE constexpr packet_share(const sent_shard& shard, int thread, int threads)
      : across_(shard.columns / packet_panel::elements),
        count_(shard.rows * across_),
        threads_(threads),
        next_(thread) {
    const int of_warp = count_ - thread / 32 * 32;
    if (of_warp <= 0) return;
    turns_ = ceil_div(of_warp, threads);
    at_ = {thread / across_, thread % across_};
    step_ = {threads / across_, threads % across_};
  }

  /// How many packets the first thread of the warp sends; other threads may send one less.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int turns() const { return turns_; }
  struct place {
    int row = -1;  ///< in the shard; -1: no packet
    int column = 0;
  };
  /// The next packet.
  UNTAX_HOST_DEVICE constexpr place take() {
    const place here{next_ < count_ ? at_.row : -1, at_.column * packet_panel::elements};
    next_ += threads_;
    at_.row += step_.row;
    at_.column += step_.column;
    if (at_.column >= across_) {
      at_.column -= across_;
      ++at_.row;
    }
    return here;
  }

 private:
  int across_ = 1;
  int count_ = 0;
  int threads_ = 0;
  int next_ = 0;
  int turns_ = 0;
  place at_;    // column in packets, also in `step_`
  place step_;  // from a packet of this thread to the next
};

}  // namespace untax
