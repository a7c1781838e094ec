#include "bench/suites/cuda/collective_runs.hpp"

#include <untax/ops/collectives.hpp>

namespace untax::bench {
namespace {

/// Plans an operator on two vectors. The function that runs it keeps it alive.
template <class Operator, class Problem>
planned_run plan(world& w, const Problem& problem, const collective_options& options,
                 const collective_work& work) {
  auto op = std::make_shared<Operator>(w, problem, options);
  const const_array_view in{work.in, work.type, Operator::in_count(problem, w.size(), w.rank())};
  const array_view out{work.out, work.type, Operator::out_count(problem, w.size(), w.rank())};
  std::string why = op->explain();
  return {[op = std::move(op), in, out](stream_ref s) { op->run(in, out, s); }, std::move(why)};
}

}  // namespace

std::int64_t elements_of(const collective_work& work, int ranks) {
  const auto size = static_cast<std::int64_t>(size_of(work.type));
  return ceil_div<std::int64_t>(work.bytes / size, ranks) * ranks;
}

std::int64_t result_of(const collective_work& work, int ranks) {
  const std::int64_t count = elements_of(work, ranks);
  return work.kind == collective_kind::reduce_scatter ? count / ranks : count;
}

planned_run plan_untax(world& w, const collective_work& work, const collective_options& options) {
  const std::int64_t count = elements_of(work, w.size());
  switch (work.kind) {
    case collective_kind::all_gather:
      return plan<all_gather>(w, all_gather_problem{count, work.type}, options, work);
    case collective_kind::reduce_scatter:
      return plan<reduce_scatter>(w, reduce_scatter_problem{count, work.type}, options, work);
    case collective_kind::all_reduce:
      return plan<all_reduce>(w, all_reduce_problem{count, work.type}, options, work);
    case collective_kind::all_to_all:
      return plan<all_to_all>(w, all_to_all_problem{count / w.size(), work.type}, options, work);
    case collective_kind::broadcast:
      return plan<broadcast>(w, broadcast_problem{count, work.type}, options, work);
  }
  return {};
}

planned_run plan_library(bulk::communicator& c, int ranks, const collective_work& work) {
  const std::int64_t count = elements_of(work, ranks);
  const std::int64_t shard = count / ranks;
  return {[&c, work, count, shard](stream_ref s) {
            switch (work.kind) {
              case collective_kind::all_gather:
                return c.all_gather(work.in, work.out, shard, work.type, s);
              case collective_kind::reduce_scatter:
                return c.reduce_scatter(work.in, work.out, shard, work.type, reduction::sum, s);
              case collective_kind::all_reduce:
                return c.all_reduce(work.in, work.out, count, work.type, reduction::sum, s);
              case collective_kind::all_to_all:
                return c.all_to_all(work.in, work.out, shard, work.type, s);
              case collective_kind::broadcast:
                return c.broadcast(work.in, work.out, count, work.type, 0, s);
            }
          },
          ""};
}

}  // namespace untax::bench
