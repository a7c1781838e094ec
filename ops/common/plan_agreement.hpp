#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <untax/ops/problems.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/gemm/plan.hpp"

namespace untax {

/// The parts of a plan in which all ranks have to agree: all that determine the reads, writes,
/// waits and signals of a kernel, and none that differ by rank. Each line is a list of fields,
/// "name value, name value", that the ledger of the world keeps as a whole.
using plan_lines = std::vector<std::string>;

/// The plan of a protocol, without the rank.
[[nodiscard]] std::string fields_of(const protocol_plan& plan);
/// The plan of a GEMM kernel, without the predictions of the model.
[[nodiscard]] std::string fields_of(const gpu::gemm_plan& plan);

/// Collective: compares the plan that this rank made with those of the others, and waits for them.
/// Each rank plans alone, for its own GPU. A difference is `disagreement` on every rank; its text
/// names two ranks and the fields in which they differ.
void agree_on_lines(world& w, std::string_view operator_name, const plan_lines& lines);

}  // namespace untax
