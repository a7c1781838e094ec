#pragma once

#include "ops/collectives_common/planning.hpp"

namespace untax {

/// The best options on GPUs: fills in all that was left open, by the bytes to send and by the
/// number of ranks, `sharing` of which share a GPU. All ranks get the same.
[[nodiscard]] collective_options device_choice(int world, const collective_need& need,
                                               const collective_options& asked, int sharing);

}  // namespace untax
