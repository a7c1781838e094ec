#pragma once

#include <untax/core/memory_kind.hpp>

namespace untax {

/// The number of GPUs that this process can use; 0 in a build without CUDA.
[[nodiscard]] int found_devices();

/// The meaning of memory_kind::automatic for `ranks` processes of this host, of which this one sees
/// `devices` GPUs. It is cuda if there is a GPU for each, or if a launcher has chosen a single one
/// for this process (`chosen`: CUDA_VISIBLE_DEVICES is set). If processes come to different
/// results, the error when they meet says so.
[[nodiscard]] memory_kind memory_for(int ranks, int devices, bool chosen) noexcept;

}  // namespace untax
