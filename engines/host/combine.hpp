#pragma once

#include <cstdint>
#include <span>

#include <untax/core/reduction.hpp>

#include "engines/host/convert.hpp"

namespace untax::host {

/// to[rows x cols] = the addends combined in order in fp32, rounded once to nearest even. All have
/// one element type. `to` may be one of the addends, but must not overlap one otherwise.
void combine(reduction how, std::span<const tile_memory> addends, std::int64_t rows,
             std::int64_t cols, const tile_memory& to);

}  // namespace untax::host
