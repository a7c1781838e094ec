#pragma once

#include <vector>

#include <untax/taxes/ablation.hpp>

#include "ops/common/memory_need.hpp"
#include "src/taxes/memory_room.hpp"

namespace untax {

/// The memory to measure an operation: of all ranks on the host, or of one rank on a GPU.
[[nodiscard]] memory_need need_of(const layer_operation& op, const ablation_options& options);

/// The address space to measure an operation on the host, where heaps count whole.
[[nodiscard]] memory_need addresses_of(const layer_operation& op, const ablation_options& options);

/// Throws `out_of_memory` if the operation with the largest `need` exceeds `room`. Unknown
/// operators are ignored here, and refused elsewhere.
void require_room_for_all(const ablation_options& options,
                          const std::vector<layer_operation>& operations, const memory_room& room,
                          memory_need (*need)(const layer_operation&,
                                              const ablation_options&) = need_of);

/// As above, with the memory that is available.
void require_memory(const ablation_options& options,
                    const std::vector<layer_operation>& operations);

}  // namespace untax
