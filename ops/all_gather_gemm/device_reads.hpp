#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engines/gpu/gemm/cta_reads.hpp"
#include "ops/all_gather_gemm/lowered.hpp"

namespace untax {

/// What a CTA reads of A in one place, and waits for.
struct gather_read {
  gpu::cta_read of;
  range rows;                ///< of C that are made of it, perhaps none
  range columns;             ///< of C
  range depth;               ///< of k
  std::int64_t weights = 0;  ///< rows of B that there are
  place from;                ///< where it lies
  /// How far in `depth` one gets when these counters have been signalled, and those before.
  struct ready {
    std::int64_t depth_end = 0;
    std::vector<int> counters;
  };
  std::shared_ptr<const std::vector<ready>> waits;
};

/// Goes through what CTAs of a gather read, by the numbers and tensor maps that its kernel is
/// given.
class gather_reader {
 public:
  gather_reader(const all_gather_gemm_problem& problem, const gather_plan& plan,
                const all_gather_gemm_protocol& how, const gather_numbers& numbers)
      : problem_(problem), plan_(plan), how_(how), numbers_(numbers) {}

  /// Calls `visit(gather_read)` for what a CTA reads of k-blocks [begin, end) of a tile, in a set.
  template <class Visit>
  void each(const gpu::cta_read& of, int set, const Visit& visit) const {
    for (int k_block = of.begin; k_block < of.end;) {
      // Most tiles read what others do, and multiply it with other columns.
      const auto [found, is_new] =
          known_.try_emplace({of.a.begin, of.a_read.begin, k_block, of.end, set});
      if (is_new) found->second = next_of(of, k_block, set);
      auto& [read, next] = found->second;
      read.of = of;
      read.columns = columns_of(of, read);
      visit(read);
      k_block = next;
    }
  }
  /// Who signals the counter of a chunk, in a set; the rank itself if it is none.
  [[nodiscard]] int source_of(int counter, int set) const;

 private:
  [[nodiscard]] std::pair<gather_read, int> next_of(const gpu::cta_read& of, int k_block,
                                                    int set) const;
  [[nodiscard]] range columns_of(const gpu::cta_read& of, const gather_read& read) const;
  void add_waits(gather_read& read, int first, int k_block, int end, int set) const;

  const all_gather_gemm_problem& problem_;
  const gather_plan& plan_;
  const all_gather_gemm_protocol& how_;
  const gather_numbers& numbers_;
  mutable std::map<std::tuple<int, int, int, int, int>, std::pair<gather_read, int>> known_;
};

/// What is wrong with what the CTAs of a plan read: rows or columns of A that are not those of
/// their results, products that are left out or made twice, and chunks that are read and not waited
/// for.
[[nodiscard]] std::vector<std::string> faults_of_reads(const all_gather_gemm_problem& problem,
                                                       const gather_plan& plan,
                                                       const all_gather_gemm_protocol& how,
                                                       const gather_numbers& numbers);

}  // namespace untax
