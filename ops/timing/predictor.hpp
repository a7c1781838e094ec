#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include <untax/core/pattern.hpp>

#include "engines/gpu/gemm/plan.hpp"
#include "engines/timing/simulate.hpp"
#include "ops/timing/calibration.hpp"
#include "ops/timing/timed_case.hpp"

namespace untax {

/// Bytes of an element: all figures are of types of 16 bits.
inline constexpr double timed_element_bytes = 2;

/// The prediction of the timing engine for a case.
struct predicted {
  double seconds = 0;
  double simulated = 0;  ///< before calibration
  /// The simulation of the part that has programs; empty for a case without any: a library, a GEMM
  /// alone.
  timing::simulation detail;
};

/// Predicts figures on a machine: lowers plans and programs to a workload, simulates it, and
/// corrects the time by the calibration, which knows the same kind of figure on one or two GPUs.
class predictor {
 public:
  /// Throws `invalid_argument` for a machine of cores.
  predictor(timing::machine m, calibration known, timing::simulation_options options = {});

  /// Throws `invalid_argument` for an unknown figure, and `unsupported` for a case that GPUs
  /// refuse.
  [[nodiscard]] predicted predict(const timed_case& c);
  /// As `predict`, without the calibration of this figure, but with the calibration of its parts.
  [[nodiscard]] predicted simulate(const timed_case& c);
  /// The key of a case in calibration files.
  [[nodiscard]] static calibration_key key_of(const timed_case& c);

  [[nodiscard]] const timing::machine& machine() const noexcept { return machine_; }
  [[nodiscard]] calibration& known() noexcept { return known_; }

  // The parts of which operators are composed.

  /// Seconds of a GEMM alone, by untax's kernels or by the library.
  [[nodiscard]] double gemm_alone(const gpu::gemm_shape& shape, bool by_library);
  /// The seconds of one plan, on as many multiprocessors as it was made for.
  [[nodiscard]] double seconds_of(const gpu::gemm_plan& plan, const gpu::gemm_shape& shape,
                                  const gpu::gemm_shape& like);
  /// As `seconds_of`, while other kernels take `beside` multiprocessors. For a plan with senders,
  /// whose model includes them, it is the time of the same plan without senders.
  [[nodiscard]] double seconds_beside(const gpu::gemm_plan& plan, const gpu::gemm_shape& shape,
                                      const gpu::gemm_shape& like, int beside);
  [[nodiscard]] const std::vector<gpu::gemm_plan>& plans(const gpu::gemm_shape& shape,
                                                         int processors);
  /// Seconds of a collective of the library among `ranks` ranks.
  [[nodiscard]] double library_collective(const std::string& name, int ranks, double bytes);
  /// Seconds of an eager run of libraries that takes the GPU `seconds`: at least the time in which
  /// its host launches a collective, a GEMM and `more` kernels.
  [[nodiscard]] double launched_by_host(double seconds, int more) const {
    return std::max(seconds, numbers().library_run + more * numbers().launch_eager);
  }
  [[nodiscard]] int processors() const;
  [[nodiscard]] const timing::machine_numbers& numbers() const { return machine_.numbers; }
  /// Simulates a workload.
  [[nodiscard]] predicted run(const timing::workload& work) const;

 private:
  timing::machine machine_;
  calibration known_;
  timing::simulation_options options_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, int>, std::vector<gpu::gemm_plan>>
      plans_;
};

/// Seconds that a CTA multiplies for each element along k, if the GEMM alone takes `seconds`: for
/// the CTA with the most k-blocks.
[[nodiscard]] double k_seconds_of(const gpu::gemm_plan& plan, double seconds);

// The predictions of each kind of operator.

[[nodiscard]] predicted simulate_gather(predictor& p, const timed_case& c);
[[nodiscard]] predicted simulate_scatter(predictor& p, const timed_case& c);
[[nodiscard]] predicted simulate_sums(predictor& p, const timed_case& c);
[[nodiscard]] predicted simulate_attention(predictor& p, const timed_case& c);
[[nodiscard]] predicted simulate_collective(predictor& p, const timed_case& c);

/// A pattern by its name. Throws `invalid_argument`.
[[nodiscard]] pattern pattern_of(const std::string& name);

}  // namespace untax
