#pragma once

#include <functional>
#include <string>

#include <untax/world/devices.hpp>

#include "bench/suites/collectives.hpp"
#include "bench/suites/gemm.hpp"
#include "bench/suites/rma.hpp"
#include "engines/timing/machine.hpp"

namespace untax::bench {

struct own_machine_options {
  int repeats = 20;
  std::function<void()> progress;  ///< called after each repeat of what is measured. May be empty
};

/// How often `progress` is called by `measure_cores`.
[[nodiscard]] int steps_of(const own_machine_options& options);

/// Measures the cores of this machine, each of which is a rank, and says of each number how. Takes
/// all cores for some seconds. Throws `unsupported` without OpenBLAS.
[[nodiscard]] timing::machine measure_cores(const own_machine_options& options);

/// Measures the GPUs of this machine: one alone says what it multiplies and reads, two or more what
/// their links do. What they do not say is taken from `like`. Throws `unsupported` where there is
/// no GPU, or no CUDA.
[[nodiscard]] timing::machine measure_gpus(const timing::machine& like, const device_survey& gpus,
                                           const own_machine_options& options);

// What reports say of a machine's numbers; what they do not say stays.

void take_numbers(timing::machine& m, const gemm_report& report);
void take_numbers(timing::machine& m, const rma_report& report);
/// After those of the verbs. It needs 1 and 2 KB of all_gather, and 1 KB of all_reduce.
void take_numbers(timing::machine& m, const collective_report& report);

}  // namespace untax::bench
