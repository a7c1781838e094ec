#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <untax/core/array_view.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/collective_problems.hpp>
#include <untax/tile/program.hpp>
#include <untax/world/world.hpp>

namespace untax {

namespace host {
class engine;
}
namespace gpu {
class collective_runner;
struct collective_kernel;
}  // namespace gpu
struct collective_need;
struct counted_programs;
class counted_runners;
class device_arguments;
class run_turns;
class count_plans;
enum class touched : std::uint8_t;

/// The common base of all collectives: operators that move data, and perhaps combine them, but do
/// not multiply. They are planned once and run many times. Construction and destruction are
/// collective. The destructor waits for no peer in a world of the host. In a world of GPUs it waits
/// for the rank's GPU and for all ranks, unless an exception is leaving.
class collective {
 public:
  collective(collective&&) noexcept;
  collective& operator=(collective&&) noexcept;

  /// The plan; with `varying_count` that of the largest count.
  [[nodiscard]] const collective_plan& plan() const noexcept { return plan_; }
  /// The choices of the plan, and their reasons, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 protected:
  /// Where a result may share memory with the input.
  struct in_place {
    bool possible = false;
    std::int64_t at = 0;  ///< input element, counted from the first of the result; may be negative
  };

  /// Makes the plan. Throws `invalid_argument` for a problem or options that are not possible.
  collective(const world& w, const collective_need& need, const collective_options& options);
  ~collective();

  /// Compares problem and plan with those of the other ranks, and makes the engine. `kernels` is
  /// called only in a world of GPUs. `tables` owns the data that the program points to; it is kept
  /// as long as the engine.
  void start(world& w, const std::string& problem, const program& p,
             const std::function<gpu::collective_kernel()>& kernels,
             const collective_options& options, std::shared_ptr<const void> tables = nullptr);
  /// As above, for runs of any count up to the problem's.
  void start(world& w, const std::string& problem, const counted_programs& counted,
             const collective_options& options);
  /// The count of a run: `given` by its arguments if counts vary, else `planned`. Throws
  /// `invalid_argument` if it is larger than the capacity.
  [[nodiscard]] std::int64_t count_of_run(std::string_view what, std::int64_t given,
                                          std::int64_t planned) const;
  /// The plan for a run of `count` elements.
  [[nodiscard]] const collective_plan& plan_of_run(std::int64_t count) const;
  /// Refuses an array that is not `count` elements of the problem's type.
  void check(std::string_view what, const const_array_view& given, std::int64_t count) const;
  /// Refuses an input and a result that share memory, unless they are placed as `allowed`.
  void check_apart(const const_array_view& in, const array_view& out,
                   const in_place& allowed) const;
  /// Executes a run of `count` elements. In a world of the host `stream` has to be empty, else
  /// `unsupported`. Throws `not_symmetric` for memory that peers have to access and cannot.
  void carry_out(const const_array_view& in, const array_view& out, std::int64_t count,
                 stream_ref stream);

 private:
  [[nodiscard]] bool on_device() const noexcept { return device_runner_ || device_runners_; }
  /// Whether `stream` is being captured.
  [[nodiscard]] bool captures(stream_ref stream) const;
  /// Executes a run in its turn.
  void take_turn(const const_array_view& in, const array_view& out, std::int64_t count,
                 stream_ref stream);
  /// One run on a GPU.
  void run_on_device(const void* in, void* out, std::int64_t count, stream_ref stream);
  /// Notes which memory peers access with one of the plans.
  void show_by(const collective_plan& plan, touched by_peers);

  /// Refuses memory that is not this rank's symmetric memory, and compares offsets with the other
  /// ranks. For new memory the function waits for them. A capture compares nothing.
  void agree_on(const const_array_view& in, const array_view& out, stream_ref stream);

  world* world_ = nullptr;
  std::string_view name_;
  process_owned<run_turns> turns_;
  collective_plan plan_;
  touched by_peers_ = {};
  bool shows_input_ = false;  ///< whether peers access the input, and the result
  bool shows_result_ = false;
  std::int64_t between_ = 0;  ///< bytes from a rank's memory to the next rank's, if peers access it
  /// The addresses that the ranks have compared, each with the text of the comparison.
  std::map<std::pair<const void*, const void*>, std::string> agreed_;
  std::string explanation_;
  dtype type_ = dtype::f32;
  std::shared_ptr<const void> tables_;
  std::shared_ptr<const count_plans> plans_;  ///< only if runs have different counts
  process_owned<host::engine> engine_;
  process_owned<gpu::collective_runner> device_runner_;  ///< instead, in a world of GPUs
  std::int64_t last_count_ = -1;                         ///< of the last run on GPUs
  process_owned<counted_runners> device_runners_;        ///< instead, on GPUs with different counts
  std::unique_ptr<device_arguments> usable_;             ///< on GPUs
};

}  // namespace untax
