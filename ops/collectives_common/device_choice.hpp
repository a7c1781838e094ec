#pragma once

#include "ops/collectives_common/planning.hpp"

namespace untax {

/// What is best on GPUs: the options with all that was left open filled in, from the bytes that
/// move and the number of ranks, of which `sharing` have a GPU. All ranks come to the same.
[[nodiscard]] collective_options device_choice(int world, const collective_need& need,
                                               const collective_options& asked, int sharing);

}  // namespace untax
