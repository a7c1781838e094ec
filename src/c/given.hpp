#pragma once

#include <untax/untax.h>
#include <untax/ops/all_gather_gemm.hpp>
#include <untax/ops/all_reduce_norm.hpp>
#include <untax/ops/collectives.hpp>
#include <untax/ops/flash_attention.hpp>
#include <untax/ops/flash_decode.hpp>
#include <untax/ops/gemm_all_reduce.hpp>
#include <untax/ops/gemm_all_scatter.hpp>
#include <untax/ops/gemm_reduce_scatter.hpp>
#include <untax/ops/merge_partial_attention.hpp>
#include <untax/ops/options.hpp>
#include <untax/world/options.hpp>

// Problems and options of C callers as the library has them, each field handed on. A null pointer
// to options gives the defaults. They throw `invalid_argument` if a value is none of those that
// there are, and as `taken` does. tests/c_abi/fields.def lists every field and where it arrives.

namespace untax::c {

[[nodiscard]] all_gather_gemm_problem problem_of(const untax_all_gather_gemm_problem* given);
[[nodiscard]] gemm_all_scatter_problem problem_of(const untax_gemm_all_scatter_problem* given);
[[nodiscard]] gemm_reduce_scatter_problem problem_of(
    const untax_gemm_reduce_scatter_problem* given);
[[nodiscard]] gemm_all_reduce_problem problem_of(const untax_gemm_all_reduce_problem* given);
[[nodiscard]] all_reduce_norm_problem problem_of(const untax_all_reduce_norm_problem* given);
[[nodiscard]] flash_attention_problem problem_of(const untax_flash_attention_problem* given);
[[nodiscard]] flash_decode_problem problem_of(const untax_flash_decode_problem* given);
[[nodiscard]] merge_partial_attention_problem problem_of(
    const untax_merge_partial_attention_problem* given);
[[nodiscard]] all_gather_problem problem_of(const untax_all_gather_problem* given);
[[nodiscard]] reduce_scatter_problem problem_of(const untax_reduce_scatter_problem* given);
[[nodiscard]] all_reduce_problem problem_of(const untax_all_reduce_problem* given);
[[nodiscard]] all_to_all_problem problem_of(const untax_all_to_all_problem* given);
[[nodiscard]] broadcast_problem problem_of(const untax_broadcast_problem* given);

/// Of the GEMM operators and of all_reduce_norm.
[[nodiscard]] operator_options options_of(const untax_operator_options* given);
[[nodiscard]] flash_decode_options options_of(const untax_flash_decode_options* given);
[[nodiscard]] merge_partial_attention_options options_of(
    const untax_merge_partial_attention_options* given);
[[nodiscard]] order::attention_order options_of(const untax_flash_attention_options* given);
[[nodiscard]] collective_options options_of(const untax_collective_options* given);
[[nodiscard]] world_options options_of(const untax_world_options* given);

/// The arguments of a run. Those that may be null are null.
[[nodiscard]] flash_attention_operands operands_of(const untax_attention_arguments* given);
[[nodiscard]] norm_inputs inputs_of(const untax_norm_arguments* given);
[[nodiscard]] norm_results results_of(const untax_norm_arguments* given);

}  // namespace untax::c
