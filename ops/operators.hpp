#pragma once

#include <concepts>
#include <span>
#include <vector>

#include "ops/all_gather/spec.hpp"
#include "ops/all_gather_gemm/spec.hpp"
#include "ops/all_reduce/spec.hpp"
#include "ops/all_reduce_norm/spec.hpp"
#include "ops/all_to_all/spec.hpp"
#include "ops/broadcast/spec.hpp"
#include "ops/common/spec.hpp"
#include "ops/flash_attention/spec.hpp"
#include "ops/flash_decode/spec.hpp"
#include "ops/gemm_all_reduce/spec.hpp"
#include "ops/gemm_all_scatter/spec.hpp"
#include "ops/gemm_reduce_scatter/spec.hpp"
#include "ops/linear/spec.hpp"
#include "ops/merge_partial_attention/spec.hpp"
#include "ops/reduce_scatter/spec.hpp"
#include "ops/rope_append/spec.hpp"

namespace untax {

/// A list of operators.
template <class... Operators>
struct operator_types {
  /// Calls visit.operator()<Operator>() for each operator of the list.
  template <class Visit>
  static void for_each(Visit visit) {
    (visit.template operator()<Operators>(), ...);
  }
};

/// The operators of the library, in the order in which people learn them. To add one, name it here.
using library_operators =
    operator_types<all_gather_gemm, gemm_all_scatter, gemm_reduce_scatter, gemm_all_reduce,
                   all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, flash_decode,
                   all_reduce_norm, merge_partial_attention, flash_attention, linear, rope_append>;

/// The entries of the library's specs whose `entry()` is of this kind.
template <class Entry>
[[nodiscard]] std::vector<Entry> entries_of() {
  std::vector<Entry> entries;
  library_operators::for_each([&]<class Operator>() {
    if constexpr (requires {
                    { spec_of<Operator>::entry() } -> std::same_as<Entry>;
                  })
      entries.push_back(spec_of<Operator>::entry());
  });
  return entries;
}

/// The specs of the library's operators, in the same order.
[[nodiscard]] std::span<const operator_spec> operator_specs();

}  // namespace untax
