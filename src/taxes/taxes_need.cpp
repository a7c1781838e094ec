#include "src/taxes/taxes_need.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/flash_decode/planning.hpp"
#include "src/taxes/backends.hpp"

namespace untax {
namespace {

constexpr double weights_in_turn = 0x1p20 * 200;  ///< bytes on GPUs, more than caches hold
constexpr double most_places = 8;
constexpr double patterns_of_gpus = 7;
constexpr int most_splits = 64;

double bytes_of(double rows, double cols, dtype type) {
  return rows * cols * static_cast<double>(size_of(type));
}

bool is_known(const layer_operation& op) {
  return is_attention(op) || find_operator(op.operator_name) != nullptr;
}

/// All variants have the same inputs; the multiplication alone has an A and a C of its own.
memory_need gemm_on_host(const layer_operation& op, const ablation_options& options) {
  const operator_entry& entry = operator_named(op.operator_name);
  const gemm_problem problem = problem_of(op);
  memory_need need;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const memory_need operands = operands_need(entry, problem, options.ranks, rank);
    need += operands;
    need.activations += operands.activations;
    for (const pattern how : host_patterns) {
      need += operator_need(entry, problem, {.how = how, .workers = options.workers}, options.ranks,
                            rank);
    }
    need.work_space += 2 * entry.bytes_sent(problem, options.ranks, rank);
  }
  return need;
}

memory_need gemm_on_gpu(const layer_operation& op, const ablation_options& options) {
  const operator_entry& entry = operator_named(op.operator_name);
  const gemm_problem problem = problem_of(op);
  memory_need need = operands_need(entry, problem, options.ranks, 0);
  const gemm_share share = entry.share(problem, options.ranks, 0);
  const auto m = static_cast<double>(op.m);
  const auto k = static_cast<double>(op.k);
  const auto cols = static_cast<double>(share.c_cols.size);
  need.weights *= std::clamp(weights_in_turn / std::max(need.weights, 1.0) + 1, 1.0, most_places);
  // A and C of the GEMM alone, the buffers of NCCL alone, and the reference for the results.
  const auto multiplied = static_cast<double>(share.b_rows.size + share.b_cols.size);
  const double moved = entry.sums_to   ? 2 * static_cast<double>(op.n)
                       : entry.gathers ? k
                                       : static_cast<double>(op.n);
  need.work_space = bytes_of(m, multiplied + moved, op.type) +
                    bytes_of(static_cast<double>(share.c_rows.size) + cols, k, op.type) +
                    bytes_of(static_cast<double>(share.c_rows.size), cols, dtype::f32);
  need.heaps =
      static_cast<double>(device_heap_for(entry, problem, options.ranks)) * patterns_of_gpus;
  return need;
}

memory_need attention_need(const layer_operation& op, const ablation_options& options) {
  const flash_decode_problem problem = attention_problem_of(op);
  memory_need need = operands_need(problem);
  const bool on_gpus = options.backend == memory_kind::cuda;
  const int splits = on_gpus ? most_splits : usual_splits(problem, options.ranks);
  const auto heap = static_cast<double>(heap_for(problem, options.ranks, splits));
  const double sent = 2 * attention_bytes_sent(op, options.ranks);
  if (on_gpus) {
    need.weights += std::min(weights_in_turn, (2 * most_places - 1) * need.weights);
    need.heaps = heap * 5;
    return need;
  }
  need.weights *= options.ranks;
  need.activations *= options.ranks;
  need.heaps = (heap * host_attention_variants + sent) * options.ranks;
  return need;
}

std::string memory_advice(const layer_operation& op, const memory_need& need,
                          const memory_room& room, const ablation_options& options) {
  if (options.backend == memory_kind::cuda)
    return "more GPUs hold it (--tensor-parallel), or one with more memory";
  // An operation of a layer has a name of its own; one operator alone has -m instead of --tokens.
  const bool alone = op.name == op.operator_name;
  if (is_attention(op))
    return alone ? "fewer --keys or a smaller -m fit" : "fewer --keys or --tokens fit";
  if (need.weights <= room.bytes) return alone ? "a smaller -m fits" : "fewer --tokens fit";
  return "a machine with more memory holds its weights, or GPUs do";
}

}  // namespace

memory_need need_of(const layer_operation& op, const ablation_options& options) {
  if (is_attention(op)) return attention_need(op, options);
  return options.backend == memory_kind::cuda ? gemm_on_gpu(op, options)
                                              : gemm_on_host(op, options);
}

memory_need addresses_of(const layer_operation& op, const ablation_options& options) {
  memory_need need = need_of(op, options);
  const double heap =
      is_attention(op)
          ? static_cast<double>(heap_for(attention_problem_of(op), options.ranks, most_splits) *
                                (host_attention_variants + 1))
          : static_cast<double>(heap_for(problem_of(op), options.ranks) * host_gemm_heaps);
  need.heaps = heap * options.ranks;
  return need;
}

void require_memory(const ablation_options& options,
                    const std::vector<layer_operation>& operations) {
  if (options.backend == memory_kind::cuda)
    return require_room_for_all(options, operations, room_on_gpus(options.ranks));
  require_room_for_all(options, operations, room_on_host());
  require_room_for_all(options, operations, room_of_addresses(), addresses_of);
}

void require_room_for_all(const ablation_options& options,
                          const std::vector<layer_operation>& operations, const memory_room& room,
                          memory_need (*need_of_operation)(const layer_operation&,
                                                           const ablation_options&)) {
  const layer_operation* largest = nullptr;
  memory_need most;
  for (const layer_operation& op : operations) {
    if (!is_known(op)) continue;
    const memory_need need = need_of_operation(op, options);
    if (largest != nullptr && need.total() <= most.total()) continue;
    largest = &op;
    most = need;
  }
  if (largest == nullptr) return;
  const layer_operation& op = *largest;
  const std::string shape = is_attention(op)
                                ? fmt::format("{} sequences of {} keys at a rank", op.m, op.k)
                                : fmt::format("m {}, n {}, k {}", op.m, op.n, op.k);
  const std::string who =
      fmt::format("{} ({}, {}, {}), with {} rank{}{},", op.name, op.operator_name, shape,
                  name_of(op.type), options.ranks, options.ranks == 1 ? "" : "s",
                  options.backend == memory_kind::cuda ? ", on each GPU" : "");
  require_room(who, most, room, {}, memory_advice(op, most, room, options));
}

}  // namespace untax
