#pragma once

#include <cstdint>
#include <string_view>

#include <untax/flow/channel.hpp>
#include <untax/flow/fault_tap.hpp>
#include <untax/flow/watch.hpp>
#include <untax/memory/host_memory.hpp>
#include <untax/symmetric/symmetric.hpp>
#include <untax/tile/step.hpp>

#include "engines/host/operand_memory.hpp"
#include "engines/host/tile_math.hpp"
#include "engines/host/trace.hpp"

namespace untax::host {

/// The counters of an operator: one array at each rank.
struct counter_array {
  symmetric<std::uint64_t> counters;

  [[nodiscard]] std::uint64_t& at(int owner, int index) const noexcept {
    return *counters.at(owner, static_cast<std::size_t>(index));
  }
};

/// One block of a rank: carries out the steps of its program, verbs and action.
class worker {
 public:
  /// `in_order`: see tile_math. `peers_are_processes`: the other ranks are not threads of this
  /// process.
  worker(std::string_view operator_name, const symmetric<std::uint64_t>& counters, watch guard,
         extent tile, bool in_order, fault_tap* faults, bool peers_are_processes)
      : operator_name_(operator_name),
        counters_{counters},
        guard_(guard),
        math_(tile, in_order),
        faults_(faults),
        peers_are_processes_(peers_are_processes) {}

  /// Records the steps of the worker in `ring` from now on; null: nowhere.
  void record(trace_ring* ring) noexcept { ring_ = ring; }
  [[nodiscard]] trace_ring* ring() const noexcept { return ring_; }

  /// Prepares for one program of one kernel. `progress` is the progress of its first step.
  void start(int rank, int kernel, int index, std::uint64_t epoch, std::uint64_t progress) {
    math_.start_run();
    site_ = {.rank = rank, .kernel = kernel, .worker = index, .step = -1, .epoch = epoch};
    first_progress_ = progress;
    outcome_ = wait_outcome::ok;
    if (faults_ != nullptr) faults_->launched(site_);
  }

  /// Reserves the memory that steps need.
  void reserve(const math_need& need) { math_.reserve(need); }

  /// Carries out one step. After a wait that failed the rest of the program is skipped, so that the
  /// worker leaves through its normal exit.
  void take(const step& s, const operand_table& operands);

  [[nodiscard]] wait_outcome outcome() const noexcept { return outcome_; }

 private:
  using verbs = channel<host_memory, counter_array, watch>;

  void before(channel_verb verb);
  [[nodiscard]] bool elsewhere(int rank) const noexcept {
    return peers_are_processes_ && rank != site_.rank;
  }
  template <class Deliver>
  void signal(channel_verb verb, const room& target, int reader, Deliver&& deliver);

  std::string_view operator_name_;
  counter_array counters_;
  watch guard_;
  tile_math math_;
  fault_tap* faults_;
  bool peers_are_processes_;
  trace_ring* ring_ = nullptr;
  fault_site site_;
  std::uint64_t first_progress_ = 0;
  wait_outcome outcome_ = wait_outcome::ok;
};

}  // namespace untax::host
