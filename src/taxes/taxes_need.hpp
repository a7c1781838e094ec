#pragma once

#include <vector>

#include <untax/taxes/ablation.hpp>

#include "ops/common/memory_need.hpp"
#include "src/taxes/memory_room.hpp"

namespace untax {

/// Memory that measuring an operation takes: of all ranks on the host, of one rank on a GPU.
[[nodiscard]] memory_need need_of(const layer_operation& op, const ablation_options& options);

/// Addresses that it takes on the host: heaps are mapped whole, of which only a part is used.
[[nodiscard]] memory_need addresses_of(const layer_operation& op, const ablation_options& options);

/// Throws `out_of_memory` for the operation of which `need` is most, if that is more than there is.
/// Operators that nobody knows are left to others to refuse.
void require_room_for_all(const ablation_options& options,
                          const std::vector<layer_operation>& operations, const memory_room& room,
                          memory_need (*need)(const layer_operation&,
                                              const ablation_options&) = need_of);

/// The same with the room that there is.
void require_memory(const ablation_options& options,
                    const std::vector<layer_operation>& operations);

}  // namespace untax
