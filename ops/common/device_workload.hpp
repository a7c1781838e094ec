#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <untax/core/matrix.hpp>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/scratch.hpp"
#include "ops/common/own_stream.hpp"
#include "ops/common/workload.hpp"

namespace untax {

/// Fills a rank's part of the inputs of a problem with N(0, 1), the same for the same seed at any
/// rank. Asynchronous on a stream of the current device.
void fill_device_inputs(const gemm_share& share, std::uint64_t seed, const matrix& a,
                        const matrix& weights, stream_ref stream);

/// The reference for a rank's part of C, in fp32, on the current device: by a plain loop or, where
/// that would take too long, by cuBLASLt with fp32 results. All memory is allocated at the
/// beginning, since an allocation may wait for kernels of peers that wait for this rank.
class device_reference {
 public:
  /// For the part of C that `rank` of `world` ranks gets.
  device_reference(const operator_entry& entry, const gemm_problem& problem, int world, int rank);

  /// Computes it for the inputs of a seed. Asynchronous.
  void compute(std::uint64_t seed, stream_ref stream);
  /// The relative error of a result, as `deviation` has it. Waits for the stream.
  [[nodiscard]] double error_of(const const_matrix& c, stream_ref stream) const;

 private:
  gemm_problem problem_;
  gemm_share share_;
  double tolerance_;
  double element_share_;
  bulk::scratch a_memory_;  ///< the rows of A that the part needs
  bulk::scratch b_memory_;
  bulk::scratch c_memory_;
  bulk::scratch sums_;
  matrix a_;
  matrix b_;
  matrix right_;
  std::optional<bulk::library_gemm> product_;  ///< for large problems
};

/// One rank's GEMM operator with inputs in memory of its GPU, which is the current device, and a
/// result that can be checked there.
class device_workload final : public trial {
 public:
  /// Collective.
  device_workload(world& w, const operator_entry& entry, const gemm_problem& problem,
                  const operator_options& options, std::uint64_t seed);

  void refresh(std::uint64_t seed) override;
  /// The same as `refresh`, asynchronously on a stream.
  void refresh_on(stream_ref stream, std::uint64_t seed);
  void poison_result() override;
  /// Returns when the result is complete.
  void run() override { launch({}); }
  /// Asynchronous, with a stream.
  void launch(stream_ref stream) { op_->run(as_const(a_), as_const(b_), c_, stream); }
  [[nodiscard]] double relative_error() const override;
  [[nodiscard]] pattern chosen() const override { return op_->plan().how; }
  [[nodiscard]] const std::string& explain() const override { return op_->explain(); }

  [[nodiscard]] const matrix& result() const noexcept { return c_; }

 private:
  [[nodiscard]] matrix own(bulk::scratch& memory, range rows, range cols) const;

  gemm_problem problem_;
  gemm_share share_;
  std::uint64_t seed_ = 0;
  own_stream stream_;
  mutable device_reference right_;  ///< of the seed that it was last computed for
  bulk::scratch a_memory_;
  bulk::scratch b_memory_;
  bulk::scratch c_memory_;
  matrix a_;
  matrix b_;
  matrix c_;
  std::unique_ptr<runnable> op_;
};

}  // namespace untax
