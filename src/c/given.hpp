#pragma once

#include <untax/untax.h>
#include <untax/decoder/options.hpp>
#include <untax/untax.hpp>

// Options of worlds and arguments of runs from structures of C callers. The functions throw
// `invalid_argument` for a value that does not exist, and the errors of `taken`.
// tests/c_abi/fields.def lists every field and the member that it sets. Problems and options of
// operators go by tables: structures.hpp.

namespace untax::c {

[[nodiscard]] world_options options_of(const untax_world_options* given);
[[nodiscard]] decoder_options options_of(const untax_decoder_options* given);

/// The arguments of a run. Pointers that may be null are null if they are not given.
[[nodiscard]] flash_attention_operands operands_of(const untax_attention_arguments* given);
[[nodiscard]] linear_operands operands_of(const untax_linear_arguments* given);
[[nodiscard]] rope_append_operands operands_of(const untax_rope_append_arguments* given);
[[nodiscard]] norm_inputs inputs_of(const untax_norm_arguments* given);
[[nodiscard]] norm_results results_of(const untax_norm_arguments* given);

}  // namespace untax::c
