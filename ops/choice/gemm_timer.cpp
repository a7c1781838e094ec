#include "ops/choice/gemm_timer.hpp"

#include <memory>

#include <untax/core/error.hpp>

#include "engines/bulk/quickest.hpp"
#include "ops/common/own_stream.hpp"
#include "ops/common/timed_operands.hpp"

namespace untax {
namespace {

constexpr std::uint64_t seed = 5;

/// Null if there is no memory.
std::shared_ptr<const timed_operands> operands_of(const gemm_share& share,
                                                  const gemm_problem& problem) {
  const own_stream stream;
  try {
    return std::make_shared<const timed_operands>(share, problem, seed, stream.get());
  } catch (const error& e) {
    if (e.code() != errc::out_of_memory) throw;
    return nullptr;
  }
}

}  // namespace

operator_timer gemm_timer(world& w, const operator_entry& entry, const gemm_problem& problem,
                          void* result) {
  if (w.ranks_per_gpu() > 1) return {};
  const auto operands = operands_of(entry.share(problem, w.size(), w.rank()), problem);
  const double missing = operands == nullptr ? 1 : 0;
  if (bulk::longest_of_ranks(w, {missing}).front() > 0) return {};
  return [&w, operands, result](device_operator& op) {
    const double seconds = bulk::seconds_in_graph(w, [&](int run, stream_ref stream) {
      op.run(operands->a().data, operands->weights(run).data,
             result != nullptr ? result : operands->c().data, stream);
    });
    op.forget_captures();
    return seconds;
  };
}

}  // namespace untax
