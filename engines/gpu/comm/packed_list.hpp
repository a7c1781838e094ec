#pragma once

#include <cstdint>
#include <vector>

#include <untax/core/host_device.hpp>

#include "engines/gpu/comm/transfer_list.hpp"

namespace untax::comm {

/// What a sender of a kernel moves next: an entry of its list, as it lies in the memory of a GPU.
/// Two loads of 16 bytes.
struct alignas(16) packed_transfer {
  std::int32_t row = 0;  ///< of the rectangle, in the matrix that it is read from
  std::int32_t col = 0;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::int32_t acquire = -1;  ///< counter here that says that it may be read; -1: none
  std::int32_t publish = -1;  ///< counter at each peer that says that it has come; -1: none
  std::int16_t first_hop = 0;
  std::int16_t hops = 0;
  std::int32_t before = 0;  ///< what goes out before it, by all senders, counted by hops

  friend bool operator==(const packed_transfer&, const packed_transfer&) = default;
};
static_assert(sizeof(packed_transfer) == 32);

/// What the senders of a rank move, sender after sender; what only waits or signals is left out.
struct packed_lists {
  std::vector<packed_transfer> entries;
  std::vector<std::int32_t> begins;  ///< where each sender's begin, and the end
};
/// Of lists whose rectangles all go equally far; rows and columns are counted from these on.
/// `together`: hops that follow each other are one entry, equally many in all of a sender; else
/// each hop is one. Throws `internal` for other lists.
[[nodiscard]] packed_lists pack(const transfer_lists& lists, std::int64_t first_row,
                                std::int64_t first_col, bool together);

/// The same where a kernel reads it.
struct sender_lists {
  const packed_transfer* entries = nullptr;
  const std::int32_t* begins = nullptr;
};

}  // namespace untax::comm
