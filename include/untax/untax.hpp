#pragma once

/// \file
/// All host headers of a program that runs operators of untax, or that moves tiles itself.

#include <untax/core/array_view.hpp>              // IWYU pragma: export
#include <untax/core/error.hpp>                   // IWYU pragma: export
#include <untax/core/half.hpp>                    // IWYU pragma: export
#include <untax/core/matrix.hpp>                  // IWYU pragma: export
#include <untax/core/version.hpp>                 // IWYU pragma: export
#include <untax/flow/channel.hpp>                 // IWYU pragma: export
#include <untax/flow/wait_verbs.hpp>              // IWYU pragma: export
#include <untax/ops/all_gather_gemm.hpp>          // IWYU pragma: export
#include <untax/ops/all_reduce_norm.hpp>          // IWYU pragma: export
#include <untax/ops/collectives.hpp>              // IWYU pragma: export
#include <untax/ops/flash_attention.hpp>          // IWYU pragma: export
#include <untax/ops/flash_decode.hpp>             // IWYU pragma: export
#include <untax/ops/gemm_all_reduce.hpp>          // IWYU pragma: export
#include <untax/ops/gemm_all_scatter.hpp>         // IWYU pragma: export
#include <untax/ops/gemm_reduce_scatter.hpp>      // IWYU pragma: export
#include <untax/ops/linear.hpp>                   // IWYU pragma: export
#include <untax/ops/merge_partial_attention.hpp>  // IWYU pragma: export
#include <untax/ops/rope_append.hpp>              // IWYU pragma: export
#include <untax/ops/rope_table.hpp>               // IWYU pragma: export
#include <untax/ops/run_order.hpp>                // IWYU pragma: export
#include <untax/rma/atomic.hpp>                   // IWYU pragma: export
#include <untax/rma/copy.hpp>                     // IWYU pragma: export
#include <untax/rma/signal.hpp>                   // IWYU pragma: export
#include <untax/symmetric/heap.hpp>               // IWYU pragma: export
#include <untax/trace/session.hpp>                // IWYU pragma: export
#include <untax/world/block.hpp>                  // IWYU pragma: export
#include <untax/world/launch.hpp>                 // IWYU pragma: export
#include <untax/world/world.hpp>                  // IWYU pragma: export
