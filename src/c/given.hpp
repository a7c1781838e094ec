#pragma once

#include <untax/untax.h>
#include <untax/decoder/options.hpp>
#include <untax/untax.hpp>

// Options of worlds and arguments of runs from structures of C callers. They throw
// `invalid_argument` for a value that there is not, and as `taken` does. tests/c_abi/fields.def
// lists every field and where it arrives. Problems and options of operators go by tables:
// structures.hpp.

namespace untax::c {

[[nodiscard]] world_options options_of(const untax_world_options* given);
[[nodiscard]] decoder_options options_of(const untax_decoder_options* given);

/// The arguments of a run. Those that may be null are null.
[[nodiscard]] flash_attention_operands operands_of(const untax_attention_arguments* given);
[[nodiscard]] linear_operands operands_of(const untax_linear_arguments* given);
[[nodiscard]] rope_append_operands operands_of(const untax_rope_append_arguments* given);
[[nodiscard]] norm_inputs inputs_of(const untax_norm_arguments* given);
[[nodiscard]] norm_results results_of(const untax_norm_arguments* given);

}  // namespace untax::c
