#pragma once

#include <untax/c/gemm.h>
#include <untax/ops/options.hpp>

#include "handles.hpp"
#include "reading.hpp"

namespace untax::c {

/// The options of a GEMM operator. `all_reduce_norm` has the same options.
[[nodiscard]] inline operator_options options_of(const untax_operator_options* given) {
  const auto o = taken_if_given(given, "untax_operator_options");
  return {.how = pattern_of(o.pattern),
          .move = o.pull != 0 ? direction::pull : direction::push,
          .launch = launch_of(o.eager),
          .workers = o.workers,
          .senders = o.senders,
          .phases = o.phases,
          .varying_rows = o.varying_rows != 0,
          .invariant = o.invariant != 0,
          .constant_weights = o.constant_weights != 0,
          .tile_m = o.tile_m,
          .tile_n = o.tile_n,
          .panel_k = o.panel_k};
}

}  // namespace untax::c
