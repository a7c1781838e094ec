#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <untax/core/pattern.hpp>
#include <untax/core/types.hpp>
#include <untax/flow/fault_tap.hpp>
#include <untax/symmetric/symmetric.hpp>
#include <untax/tile/program.hpp>
#include <untax/tile/row_program.hpp>
#include <untax/world/world.hpp>

#include "engines/host/operand_memory.hpp"
#include "engines/host/roll_call.hpp"
#include "engines/host/team.hpp"
#include "engines/host/trace.hpp"
#include "engines/host/worker.hpp"

namespace untax::host {

/// Options of an engine, beside the program.
struct engine_options {
  std::string operator_name;
  dtype inbox_type = dtype::f32;
  dtype outbox_type = dtype::f32;
  launch_mode launch = launch_mode::graph;
  std::shared_ptr<fault_tap> faults = nullptr;
  dtype operand_type = dtype::f32;  ///< of the caller's operands, if runs differ in rows
  bool in_order = false;            ///< multiplies in order: bits do not depend on the shape
};

/// Carries out a program on the threads of one rank. It owns the operator's symmetric memory
/// (counters, inbox, outbox) and its epoch. Construction and destruction are collective: every
/// rank, in the same order. Destruction waits for no peer.
class engine {
 public:
  /// Throws `out_of_memory`, or the error of a stopped world. A failure at this rank only, such as
  /// threads that cannot be created, stops the world: the other ranks continue into `run`.
  engine(world& w, program p, engine_options options);
  /// For runs with different numbers of rows.
  engine(world& w, row_program p, engine_options options);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  /// Retires the operator's memory, since peers may still be reading data that this rank has sent,
  /// or signal that they have read it.
  ~engine();

  /// Runs one epoch. `operands` holds the caller's; the engine adds its own. Returns when this
  /// rank's result is complete and no peer reads its operands any more. Throws when a wait fails.
  void run(operand_table operands);
  /// As above, with `rows` rows, 0 to the capacity, for engines of a `row_program`. All ranks have
  /// to pass the same number. Allocates nothing in `launch_mode::graph`. Throws `disagreement` if a
  /// rank has passed another number; that is checked during waits and at the end.
  void run(operand_table operands, std::int64_t rows);

 private:
  struct memory {
    owned_symmetric<std::byte> bytes;
    operand_memory operand;
    std::int64_t elements_of_set = 0;
  };
  class work;

  [[nodiscard]] memory allocate(std::int64_t elements, std::int64_t cols, dtype type,
                                const std::string& label);
  void refuse_gpus(const world& w) const;
  void make_counters(int counters);
  void make_workers(int most, const extent& tile);
  void make_workers_or_stop(int most, const extent& tile);
  void warm_up();
  void carry_out(const work& w, const operand_table& operands);
  void run_stage(const work& w, int stage, const operand_table& operands);
  /// The calling thread's trace ring; null: nothing is recorded.
  [[nodiscard]] trace_ring* caller_ring() const noexcept {
    return trace_ ? trace_->caller() : nullptr;
  }

  world* world_;
  std::optional<program> program_;
  std::optional<row_program> rows_;
  engine_options options_;
  owned_symmetric<std::uint64_t> counters_;
  memory inbox_;
  memory outbox_;
  std::unique_ptr<roll_call> roll_call_;
  std::vector<worker> workers_;
  std::shared_ptr<engine_trace> trace_;  // null unless a trace is recorded
  std::unique_ptr<team> team_;
  std::uint64_t epoch_ = 0;
  std::uint64_t run_ = 0;  // the number of the current run in the world
};

}  // namespace untax::host
