#pragma once

#include <untax/c/gemm.h>
#include <untax/core/memory_kind.hpp>
#include <untax/ops/options.hpp>

#include "handles.hpp"
#include "reading.hpp"

namespace untax::c {

/// Options of a GEMM operator, and of what is planned with the same.
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

/// Throws `unsupported`: on the host there are no streams.
inline void refuse_stream_on_host(const untax_operator& op, const void* stream) {
  if (stream == nullptr || op.owner->ranks.memory() == memory_kind::cuda) return;
  throw error(
      errc::unsupported,
      fmt::format("{} runs in a world of the host, which has no streams; pass NULL", op.kind()));
}

}  // namespace untax::c
