#pragma once

#include <untax/core/memory_kind.hpp>

namespace untax {

/// GPUs that this process can use; 0 also where CUDA is not compiled in.
[[nodiscard]] int found_devices();

/// What memory_kind::automatic comes to for `ranks` processes of this host, of which this one sees
/// `devices` GPUs: cuda if there is one for each, or if a launcher has chosen a single one for it
/// (`chosen`: CUDA_VISIBLE_DEVICES is set). Processes that come to different things are told so
/// when they meet.
[[nodiscard]] memory_kind memory_for(int ranks, int devices, bool chosen) noexcept;

}  // namespace untax
