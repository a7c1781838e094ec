#pragma once

#include <cstdint>
#include <string>

#include <untax/core/activation.hpp>
#include <untax/core/matrix.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>
#include <untax/world/world.hpp>

namespace untax {

class linear_backend;
class run_turns;

/// A linear layer: out = activation(x W^T + bias). W has n rows, or 2 n if the function is gated.
struct linear_problem {
  std::int64_t rows = 0;  ///< of x and out; a capacity with `varying_rows`
  std::int64_t n = 0;     ///< columns of out
  std::int64_t k = 0;     ///< columns of x
  dtype type = dtype::bf16;
  activation_function activation = activation_function::none;
};

/// Options of linear.
struct linear_options {
  /// A run has any number of rows up to the problem's.
  bool varying_rows = false;
  /// The bits of a row depend neither on the number of rows nor on its place.
  bool invariant = false;
  /// No work ahead in the stream writes the weights, so kernels may read them before it has ended.
  /// Of GPUs only.
  bool constant_weights = false;
  /// The product is computed by cuBLASLt, as programs call it today, and by no kernel of untax. Of
  /// GPUs only; there without `invariant`.
  bool library = false;
};

/// The matrices of a run; rows may have gaps between them on hosts.
struct linear_operands {
  const_matrix x;              ///< [n, k], or [2 n, k] if the function is gated
  const_matrix weights;        ///< [n, k], or [2 n, k] where the function is gated
  const void* bias = nullptr;  ///< one element for each row of the weights; may be null
  matrix out;                  ///< [rows, n]; written
};

/// A matrix product on one GPU, or on one rank's processors, with the operations that follow it in
/// a layer. Each rank computes for itself: nothing is sent. Sums are in fp32, and rounded to the
/// type of the problem before and after the function. ops/linear/README.md says which kernels run.
///
/// Weights of a gated function have their rows in groups of eight, gate and up in turn: rows 16 i
/// to 16 i + 7 are rows 8 i to 8 i + 7 of the gate's, and the eight after them those of up. So n is
/// a multiple of 8. `interleave` makes that order.
class linear {
 public:
  /// Rows of gate and up that lie together.
  static constexpr std::int64_t group = gate_group;

  /// Not collective. `w` has to outlive the operator. Throws `invalid_argument`. In a world of GPUs
  /// it also throws `invalid_argument` for fp32 and for n or k that are no multiples of 8, and
  /// `unsupported` for `library` where there is no cuBLASLt or with `invariant`. There it times the
  /// kernels that may be the quickest, on memory of its own, unless UNTAX_MEASURE is 0.
  linear(world& w, const linear_problem& problem, const linear_options& options = {});
  linear(linear&&) noexcept;
  linear& operator=(linear&&) noexcept;
  ~linear();

  /// Not collective. `out` shares no memory with the others. Throws `invalid_argument` before
  /// anything is written. On the host it returns when `out` is complete.
  ///
  /// In a world of GPUs the operands are in memory of the rank's GPU, at multiples of 16 bytes and
  /// without gaps between rows. With a stream a run only launches, by programmatic dependent launch
  /// where its kernels are untax's, and can be captured in a CUDA graph. Without one it starts
  /// after the work in the default stream, and returns when `out` is complete. Runs of one operator
  /// take place in the order of the calls, also on several streams and in graphs; those of others
  /// may overlap with them (docs/design.md, "The order of runs"). Several threads may call it.
  void run(const linear_operands& operands, stream_ref stream = {});

  /// The kernels that run, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

  /// Writes the rows of `gate` and of `up`, [n, k], in the order of a gated function's weights to
  /// `weights`, [2 n, k]; all in memory of the host and of one type. Throws `invalid_argument`.
  static void interleave(const const_matrix& gate, const const_matrix& up, const matrix& weights);

 private:
  void check(const linear_operands& operands) const;

  linear_problem problem_;
  linear_options options_;
  int rank_;
  std::string explanation_;
  process_owned<run_turns> turns_;
  process_owned<linear_backend> backend_;
};

}  // namespace untax
