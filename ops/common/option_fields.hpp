#pragma once

#include <untax/ops/options.hpp>

#include "ops/common/field.hpp"

namespace untax {

/// The fields of `operator_options`, which the GEMM operators and others have.
inline constexpr field operator_option_fields[] = {
    fields::choice<&operator_options::how>("pattern", "a way to overlap", fields::pattern_words),
    fields::flag<&operator_options::move>("pull", "readers move data, not owners",
                                          fields::direction_words),
    fields::launch<&operator_options::launch>(),
    fields::integer<&operator_options::workers>(
        "workers", "computing workers of a rank; on GPUs the most blocks that multiply")
        .between(0, 31),
    fields::integer<&operator_options::senders>("senders",
                                                "senders of a rank, if the pattern has them")
        .between(0, 31),
    fields::flag<&operator_options::constant_weights>(
        "constant_weights", "no work ahead in the stream writes the weights")
        .of_gpus(),
    fields::integer<&operator_options::tile_m>("tile_m", "rows of a tile").of_host(),
    fields::integer<&operator_options::tile_n>("tile_n", "columns of a tile").of_host(),
    fields::integer<&operator_options::panel_k>("panel_k",
                                                "columns of a chunk if A is gathered by k")
        .of_host(),
    fields::integer<&operator_options::phases>(
        "phases", "1: every rank adds everything; 2: owners add rows and send sums")
        .between(0, 2),
    fields::flag<&operator_options::varying_rows>(
        "varying_rows", "m, or tokens, is a capacity: a run has any number of rows up to it"),
    fields::flag<&operator_options::invariant>(
        "invariant", "rows of results have the same bits for every m, place and pattern"),
};

}  // namespace untax
