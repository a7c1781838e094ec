#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "engines/host/engine.hpp"
#include "ops/common/row_plans.hpp"

namespace untax {

/// The part of a planned GEMM operator that carries out its runs: with an engine of the host, or
/// with kernels.
class gemm_backend {
 public:
  gemm_backend() = default;
  gemm_backend(const gemm_backend&) = delete;
  gemm_backend& operator=(const gemm_backend&) = delete;
  virtual ~gemm_backend() = default;

  /// Runs one epoch with `rows` rows, within a turn of the operator. The class has checked types
  /// and sizes. Throws `invalid_argument` for a stream or memory that the backend cannot take, and
  /// the error of a wait that failed.
  virtual void run(std::int64_t rows, const const_matrix& a, const const_matrix& weights,
                   const matrix& c, stream_ref stream) = 0;
};

/// The backend of a world of the host.
class host_gemm final : public gemm_backend {
 public:
  /// `operator_name` is for errors, and has to outlive this object. `plans`: set if runs have
  /// different numbers of rows, else null. `c_span`: bytes from a rank's C to the next one's, if
  /// peers write it, else 0. `p` is a `program` or a `row_program`.
  template <class Program>
  host_gemm(world& w, std::string_view operator_name, std::shared_ptr<const row_plans> plans,
            std::ptrdiff_t c_span, Program&& p, const host::engine_options& options)
      : name_(operator_name),
        rank_(w.rank()),
        plans_(std::move(plans)),
        c_span_(c_span),
        engine_(w, std::forward<Program>(p), options) {}

  void run(std::int64_t rows, const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream) override;

 private:
  std::string_view name_;
  int rank_;
  std::shared_ptr<const row_plans> plans_;
  std::ptrdiff_t c_span_;
  host::engine engine_;
};

}  // namespace untax
