#pragma once

#include <cstdint>
#include <string>

#include <untax/flow/watch.hpp>
#include <untax/symmetric/symmetric.hpp>
#include <untax/tile/row_program.hpp>
#include <untax/world/world.hpp>

namespace untax::host {

/// Compares the numbers of rows that the ranks pass to the same run. Each rank writes its number to
/// all others before it sends its flags of the roll call. So a rank that has received a flag knows
/// the sender's number, and no rank waits for it.
class roll_call final : public wait_suspicion {
 public:
  /// Collective. `counters` are the operator's.
  roll_call(world& w, const row_program& p, const symmetric<std::uint64_t>& counters,
            std::string operator_name);

  /// Writes this rank's number to all ranks.
  void begin(const row_run& run);
  /// Stops the world if a rank that has begun this run has another number. Any worker may call it.
  void look() override;
  /// Call it when all ranks have begun the run. Throws `disagreement` if one has another number.
  void end();

 private:
  /// The word at rank `at` for the number of rank `from`.
  [[nodiscard]] std::uint64_t& told(int at, int from) const noexcept;
  [[nodiscard]] bool has_begun(int peer) const noexcept;
  [[nodiscard]] bool differs() const noexcept;
  [[nodiscard]] std::string text() const;

  world* world_;
  row_program program_;
  symmetric<std::uint64_t> counters_;
  owned_symmetric<std::uint64_t> rows_;
  std::string operator_name_;
  row_run run_;
};

}  // namespace untax::host
