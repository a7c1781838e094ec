#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <untax/core/stream_ref.hpp>

#include "ops/common/operand_set.hpp"
#include "ops/common/trial.hpp"

namespace untax {

/// One rank's operator with random inputs and a result that can be checked, on the host and on
/// GPUs. `Work` describes the operator on a problem at a rank:
///
///   problem_type, options_type             what it is planned for
///   operator_type                          the class, or an interface of it
///   operands() -> vector<trial_operand>    its operands, in the order in which `set` has them
///   make(w, options) -> unique_ptr<operator_type>     collective
///   place_results(op, set)                 only if results lie in memory of the operator
///   fill(seed, set)                        writes the inputs, the same for the same seed
///   run(op, set, stream)                   one epoch
///   relative_error(seed, set)              of the results, as `deviation` has it
template <class Work>
class operator_trial : public trial {
 public:
  using problem_type = typename Work::problem_type;
  using options_type = typename Work::options_type;

  /// Collective.
  operator_trial(world& w, Work work, const options_type& options, std::uint64_t seed)
      : work_(std::move(work)), operands_(w, work_.operands()), op_(work_.make(w, options)) {
    if constexpr (requires { work_.place_results(*op_, operands_); })
      work_.place_results(*op_, operands_);
    refresh(seed);
    poison_result();
    // No rank may run while another one still allocates GPU memory.
    if (operands_.on_gpu()) w.barrier();
  }
  /// Collective. For `Work` that is made of a problem and a rank.
  operator_trial(world& w, const problem_type& problem, const options_type& options,
                 std::uint64_t seed) requires(std::constructible_from<Work, problem_type, int, int>)
      : operator_trial(w, Work(problem, w.size(), w.rank()), options, seed) {}

  void refresh(std::uint64_t seed) override {
    seed_ = seed;
    work_.fill(seed, operands_);
    operands_.store_inputs();
  }
  void poison_result() override { operands_.poison_results(); }
  void run() override { launch({}); }
  /// With a stream of a GPU it does not wait.
  void launch(stream_ref stream) { work_.run(*op_, operands_, stream); }
  [[nodiscard]] double relative_error() const override {
    return work_.relative_error(seed_, operands_);
  }
  [[nodiscard]] pattern chosen() const override { return op_->plan().how; }
  [[nodiscard]] const std::string& explain() const override { return op_->explain(); }
  /// The bits of all results, one after the other.
  [[nodiscard]] std::vector<std::byte> bits() const { return operands_.result_bits(); }
  [[nodiscard]] operand_memory& operand(std::size_t i) { return operands_[i]; }

 protected:
  Work work_;
  std::uint64_t seed_ = 0;
  mutable operand_set operands_;  ///< a check brings results to the host

 private:
  std::unique_ptr<typename Work::operator_type> op_;
};

/// The `make` of a subject. `Trial` takes a world, `what`, options and a seed.
template <class Trial, class Options, class... What>
[[nodiscard]] auto maker_of_trials(const Options& options, const What&... what) {
  return [options, what...](world& w, pattern how, std::uint64_t seed) -> std::unique_ptr<trial> {
    Options chosen = options;
    chosen.how = how;
    return std::make_unique<Trial>(w, what..., chosen, seed);
  };
}

/// The `need` of a subject: of all ranks on the host, of the rank with the largest need on GPUs.
/// `need_of_rank(ranks, rank, patterns, verify)` is that of one rank.
template <class Need>
[[nodiscard]] auto need_of_ranks(memory_kind memory, const Need& need_of_rank) {
  return [=](int ranks, const std::vector<pattern>& patterns, bool verify) {
    memory_need sum;
    memory_need most;
    double heap = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const memory_need own = need_of_rank(ranks, rank, patterns, verify);
      heap = std::max(heap, own.heap_of_rank);
      if (own.total() > most.total()) most = own;
      sum += own;
    }
    if (memory == memory_kind::cuda) return most;
    sum.heap_of_rank = heap;
    return sum;
  };
}

}  // namespace untax
