#include "plans.hpp"

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "fields.hpp"

namespace untax::python {
namespace {

constexpr field gemm_options[] = {
    UNTAX_FIELD(untax_operator_options, pattern),
    UNTAX_FIELD(untax_operator_options, pull),
    UNTAX_FIELD(untax_operator_options, eager),
    UNTAX_FIELD(untax_operator_options, workers),
    UNTAX_FIELD(untax_operator_options, senders),
    UNTAX_FIELD(untax_operator_options, constant_weights),
    UNTAX_FIELD(untax_operator_options, tile_m),
    UNTAX_FIELD(untax_operator_options, tile_n),
    UNTAX_FIELD(untax_operator_options, panel_k),
    UNTAX_FIELD(untax_operator_options, phases),
    UNTAX_FIELD(untax_operator_options, varying_rows),
    UNTAX_FIELD(untax_operator_options, invariant),
};

constexpr field decode_options[] = {
    UNTAX_FIELD(untax_flash_decode_options, pattern),
    UNTAX_FIELD(untax_flash_decode_options, eager),
    UNTAX_FIELD(untax_flash_decode_options, workers),
    UNTAX_FIELD(untax_flash_decode_options, senders),
    UNTAX_FIELD(untax_flash_decode_options, splits),
};

constexpr field merge_options[] = {
    UNTAX_FIELD(untax_merge_partial_attention_options, pattern),
    UNTAX_FIELD(untax_merge_partial_attention_options, eager),
    UNTAX_FIELD(untax_merge_partial_attention_options, workers),
    UNTAX_FIELD(untax_merge_partial_attention_options, senders),
    UNTAX_FIELD(untax_merge_partial_attention_options, varying_tokens),
};

constexpr field attention_options[] = {
    UNTAX_FIELD(untax_flash_attention_options, order),
};

constexpr field collective_options[] = {
    UNTAX_FIELD(untax_collective_options, pattern),
    UNTAX_FIELD(untax_collective_options, phases),
    UNTAX_FIELD(untax_collective_options, eager),
    UNTAX_FIELD(untax_collective_options, wire),
    UNTAX_FIELD(untax_collective_options, workers),
    UNTAX_FIELD(untax_collective_options, depth),
    UNTAX_FIELD(untax_collective_options, chunk_bytes),
    UNTAX_FIELD(untax_collective_options, direct),
    UNTAX_FIELD(untax_collective_options, inputs),
    UNTAX_FIELD(untax_collective_options, varying_count),
};

template <class Problem>
struct fields_of;

#define UNTAX_FIELDS(problem, ...)                \
  template <>                                     \
  struct fields_of<problem> {                     \
    using type = problem;                         \
    static constexpr field all[] = {__VA_ARGS__}; \
  }
UNTAX_FIELDS(untax_all_gather_gemm_problem, UNTAX_FIELD(type, m), UNTAX_FIELD(type, n),
             UNTAX_FIELD(type, k), UNTAX_FIELD(type, type), UNTAX_FIELD(type, gather_k));
UNTAX_FIELDS(untax_gemm_all_scatter_problem, UNTAX_FIELD(type, m), UNTAX_FIELD(type, n),
             UNTAX_FIELD(type, k), UNTAX_FIELD(type, type));
UNTAX_FIELDS(untax_gemm_reduce_scatter_problem, UNTAX_FIELD(type, m), UNTAX_FIELD(type, n),
             UNTAX_FIELD(type, k), UNTAX_FIELD(type, type), UNTAX_FIELD(type, partials));
UNTAX_FIELDS(untax_gemm_all_reduce_problem, UNTAX_FIELD(type, m), UNTAX_FIELD(type, n),
             UNTAX_FIELD(type, k), UNTAX_FIELD(type, type), UNTAX_FIELD(type, partials));
UNTAX_FIELDS(untax_flash_decode_problem, UNTAX_FIELD(type, batch), UNTAX_FIELD(type, heads),
             UNTAX_FIELD(type, kv_heads), UNTAX_FIELD(type, head_dim), UNTAX_FIELD(type, keys),
             UNTAX_FIELD(type, page_size), UNTAX_FIELD(type, pages), UNTAX_FIELD(type, type),
             UNTAX_FIELD(type, partials), UNTAX_FIELD(type, scale), UNTAX_FIELD(type, logit_cap));
UNTAX_FIELDS(untax_merge_partial_attention_problem, UNTAX_FIELD(type, tokens),
             UNTAX_FIELD(type, heads), UNTAX_FIELD(type, head_dim), UNTAX_FIELD(type, type),
             UNTAX_FIELD(type, own_heads), UNTAX_FIELD(type, log2));
UNTAX_FIELDS(untax_flash_attention_problem, UNTAX_FIELD(type, batch), UNTAX_FIELD(type, heads),
             UNTAX_FIELD(type, kv_heads), UNTAX_FIELD(type, head_dim), UNTAX_FIELD(type, queries),
             UNTAX_FIELD(type, keys), UNTAX_FIELD(type, type), UNTAX_FIELD(type, causal),
             UNTAX_FIELD(type, scale));
UNTAX_FIELDS(untax_all_reduce_norm_problem, UNTAX_FIELD(type, tokens), UNTAX_FIELD(type, hidden),
             UNTAX_FIELD(type, type), UNTAX_FIELD(type, output), UNTAX_FIELD(type, epsilon));
UNTAX_FIELDS(untax_all_gather_problem, UNTAX_FIELD(type, count), UNTAX_FIELD(type, type));
UNTAX_FIELDS(untax_reduce_scatter_problem, UNTAX_FIELD(type, count), UNTAX_FIELD(type, type),
             UNTAX_FIELD(type, reduction));
UNTAX_FIELDS(untax_all_reduce_problem, UNTAX_FIELD(type, count), UNTAX_FIELD(type, type),
             UNTAX_FIELD(type, reduction));
UNTAX_FIELDS(untax_all_to_all_problem, UNTAX_FIELD(type, count), UNTAX_FIELD(type, type));
UNTAX_FIELDS(untax_broadcast_problem, UNTAX_FIELD(type, count), UNTAX_FIELD(type, type),
             UNTAX_FIELD(type, root));
#undef UNTAX_FIELDS

template <class Problem, class Options>
using planner = int32_t (*)(untax_world*, const Problem*, const Options*, untax_operator**);

template <class Problem, class Options>
untax_operator* planned(planner<Problem, Options> plan, untax_world* w, const Problem& p,
                        const Options& o) {
  untax_operator* made = nullptr;
  checked([&] { return plan(w, &p, &o, &made); });
  return made;
}

template <class Problem, planner<Problem, untax_operator_options> Plan>
untax_operator* gemm(untax_world* w, const nb::dict& problem, const nb::dict& options) {
  return planned(Plan, w, filled<Problem>(problem, fields_of<Problem>::all),
                 filled<untax_operator_options>(options, gemm_options));
}

template <class Problem, planner<Problem, untax_collective_options> Plan>
untax_operator* collective(untax_world* w, const nb::dict& problem, const nb::dict& options) {
  return planned(Plan, w, filled<Problem>(problem, fields_of<Problem>::all),
                 filled<untax_collective_options>(options, collective_options));
}

untax_operator* decode(untax_world* w, const nb::dict& problem, const nb::dict& options) {
  using structure = untax_flash_decode_problem;
  return planned(untax_flash_decode_plan, w, filled<structure>(problem, fields_of<structure>::all),
                 filled<untax_flash_decode_options>(options, decode_options));
}

untax_operator* merge(untax_world* w, const nb::dict& problem, const nb::dict& options) {
  using structure = untax_merge_partial_attention_problem;
  return planned(untax_merge_partial_attention_plan, w,
                 filled<structure>(problem, fields_of<structure>::all),
                 filled<untax_merge_partial_attention_options>(options, merge_options));
}

untax_operator* attention(untax_world* w, const nb::dict& problem, const nb::dict& options) {
  using structure = untax_flash_attention_problem;
  return planned(untax_flash_attention_plan, w,
                 filled<structure>(problem, fields_of<structure>::all),
                 filled<untax_flash_attention_options>(options, attention_options));
}

// The matrix of counts is no number, and taken out first.
untax_operator* exchange(untax_world* w, const nb::dict& problem, const nb::dict& options) {
  using structure = untax_all_to_all_problem;
  nb::dict numbers;
  std::vector<std::int64_t> counts;
  for (const auto [key, value] : problem) {
    if (nb::cast<std::string>(key) == "counts") {
      counts = nb::cast<std::vector<std::int64_t>>(value);
    } else {
      numbers[key] = value;
    }
  }
  auto p = filled<structure>(numbers, fields_of<structure>::all);
  p.counts = counts.data();
  p.counts_size = static_cast<std::int32_t>(counts.size());
  return planned(untax_all_to_all_plan, w, p,
                 filled<untax_collective_options>(options, collective_options));
}

constexpr plan_entry entries[] = {
    {"all_gather_gemm", gemm<untax_all_gather_gemm_problem, untax_all_gather_gemm_plan>,
     untax_all_gather_gemm_run, nullptr, nullptr},
    {"gemm_all_scatter", gemm<untax_gemm_all_scatter_problem, untax_gemm_all_scatter_plan>,
     untax_gemm_all_scatter_run, nullptr, untax_gemm_all_scatter_result},
    {"gemm_reduce_scatter", gemm<untax_gemm_reduce_scatter_problem, untax_gemm_reduce_scatter_plan>,
     untax_gemm_reduce_scatter_run, nullptr, nullptr},
    {"gemm_all_reduce", gemm<untax_gemm_all_reduce_problem, untax_gemm_all_reduce_plan>,
     untax_gemm_all_reduce_run, nullptr, untax_gemm_all_reduce_result},
    {"all_reduce_norm", gemm<untax_all_reduce_norm_problem, untax_all_reduce_norm_plan>, nullptr,
     nullptr, nullptr},
    {"flash_attention", attention, nullptr, nullptr, nullptr},
    {"flash_decode", decode, nullptr, nullptr, nullptr},
    {"merge_partial_attention", merge, nullptr, nullptr, nullptr},
    {"all_gather", collective<untax_all_gather_problem, untax_all_gather_plan>, nullptr,
     untax_all_gather_run, nullptr},
    {"reduce_scatter", collective<untax_reduce_scatter_problem, untax_reduce_scatter_plan>, nullptr,
     untax_reduce_scatter_run, nullptr},
    {"all_reduce", collective<untax_all_reduce_problem, untax_all_reduce_plan>, nullptr,
     untax_all_reduce_run, nullptr},
    {"all_to_all", exchange, nullptr, untax_all_to_all_run, nullptr},
    {"broadcast", collective<untax_broadcast_problem, untax_broadcast_plan>, nullptr,
     untax_broadcast_run, nullptr},
};

}  // namespace

std::span<const plan_entry> plan_entries() noexcept { return entries; }

}  // namespace untax::python
