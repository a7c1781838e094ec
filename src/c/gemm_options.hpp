#pragma once

#include <untax/c/gemm.h>
#include <untax/ops/options.hpp>

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
          .constant_weights = o.constant_weights != 0,
          .tile_m = o.tile_m,
          .tile_n = o.tile_n,
          .panel_k = o.panel_k};
}

/// Throws `unsupported`: on the host there are no streams.
inline void refuse_stream(const char* operator_name, const void* stream) {
  if (stream == nullptr) return;
  throw error(errc::unsupported,
              fmt::format("{} runs in worlds of the host, which have no streams; pass NULL",
                          operator_name));
}

}  // namespace untax::c
