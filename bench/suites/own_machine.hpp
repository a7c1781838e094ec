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
  std::function<void()> progress;  ///< called after each repeat of a measurement. May be empty
};

/// The number of calls of `progress` by `measure_cores`.
[[nodiscard]] int steps_of(const own_machine_options& options);

/// Measures the cores of this machine, each of which is a rank, and records the source of each
/// number. Uses all cores for some seconds. Throws `unsupported` without OpenBLAS.
[[nodiscard]] timing::machine measure_cores(const own_machine_options& options);

/// Measures the GPUs of this machine: compute and memory of one, and the links if there are two or
/// more. Other numbers are taken from `like`. Throws `unsupported` if there is no GPU, or no CUDA.
[[nodiscard]] timing::machine measure_gpus(const timing::machine& like, const device_survey& gpus,
                                           const own_machine_options& options);

// Take a machine's numbers from reports; other numbers stay.

void take_numbers(timing::machine& m, const gemm_report& report);
void take_numbers(timing::machine& m, const rma_report& report);
/// To be called after the rma report was taken. The report needs all_gather of 1 and 2 KB, and
/// all_reduce of 1 KB.
void take_numbers(timing::machine& m, const collective_report& report);

}  // namespace untax::bench
