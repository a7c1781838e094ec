#include "ops/common/run_turns.hpp"

#include <map>
#include <mutex>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/ops/run_order.hpp>

namespace untax {

namespace {

/// The order of all collective runs of a rank. Kernels of one operator may occupy all
/// multiprocessors and wait for peers, so ranks that started two operators in different orders
/// would wait for each other.
std::shared_ptr<stream_order> stream_order_of(world& w) {
  static std::mutex mutex;
  static std::map<const control*, std::weak_ptr<stream_order>> known;
  const std::scoped_lock lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<stream_order>& place = known[&w.state()];
  std::shared_ptr<stream_order> order = place.lock();
  if (!order) place = order = std::make_shared<stream_order>();
  return order;
}

}  // namespace

thread_local run_turns::enclosing_run run_turns::around;

run_turns::run_turns(world& w, std::string_view operator_name, bool collective)
    : rank_(w.rank()), name_(operator_name), collective_(collective) {
  if (w.memory() != memory_kind::cuda) return;
  w.use_device();
  order_ = collective ? stream_order_of(w) : std::make_shared<stream_order>();
}

run_turns::run_turns(world& w, std::string_view operator_name)
    : run_turns(w, operator_name, true) {}

run_turns run_turns::alone(world& w, std::string_view operator_name) {
  return {w, operator_name, false};
}

void let_runs_follow(world& w, stream_ref stream) {
  if (w.memory() != memory_kind::cuda) return;
  w.use_device();
  const std::shared_ptr<stream_order> order = stream_order_of(w);
  order->begin(stream);
  order->end(stream);
}

void run_turns::refuse() const {
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {}: another thread is in a run of this operator, which is used "
                          "by one thread at a time; let the threads take turns, in the same order "
                          "at all ranks, or give each an operator of its own",
                          rank_, name_));
}

void run_turns::end_quietly(stream_ref stream) noexcept {
  try {
    order_->end(stream);
  } catch (const error&) {
    // The error of the run is the one to report.
    return;
  }
}

}  // namespace untax
