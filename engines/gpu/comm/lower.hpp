#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engines/gpu/comm/transfer_list.hpp"

namespace untax::comm {

/// Emits the steps of a worker in an epoch.
using step_source = std::function<void(int worker, std::uint64_t epoch, const program::sink& emit)>;

/// Whose steps are lowered.
struct lowered_workers {
  int rank = 0;
  int world = 1;
  int count = 1;   ///< of workers
  room_sets sets;  ///< of their rooms
};

/// Writes the steps of workers, which copy, wait and signal, out as flat lists. Throws `internal`
/// for a program that such lists cannot say: one that computes, or whose epochs differ by more than
/// the set of rooms and the number of the use. All epochs are compared in which a set is used for
/// the first time or for the second.
[[nodiscard]] transfer_lists lower(const lowered_workers& of, const step_source& program);

/// Where lists and a program part: the first difference, over the same epochs. Empty: they are the
/// same.
[[nodiscard]] std::string difference(const transfer_lists& lists, const lowered_workers& of,
                                     const step_source& program);

}  // namespace untax::comm
