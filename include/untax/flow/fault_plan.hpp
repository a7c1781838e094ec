#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <untax/flow/fault_tap.hpp>

namespace untax {

/// The kinds of faults that a test can inject.
enum class fault_kind : std::uint8_t {
  drop,            ///< the signal is never raised
  delay,           ///< the signal comes late; its worker continues at once
  duplicate,       ///< the signal comes twice
  late_duplicate,  ///< the signal comes again after the next one on the same counter
  stall,           ///< the worker sleeps before the verb
  kill,            ///< the process of the rank is killed by SIGKILL
  exit,            ///< the process of the rank exits without raising signals or destroying objects
};

[[nodiscard]] std::string_view name_of(fault_kind kind) noexcept;
[[nodiscard]] std::string_view name_of(channel_verb verb) noexcept;
/// Whether faults of this kind affect signals (publish, retire), and no other verbs.
[[nodiscard]] constexpr bool strikes_signals(fault_kind kind) noexcept {
  return kind <= fault_kind::late_duplicate;
}

/// One fault at one rank, which occurs once: at the `nth` of the sites that the other fields match.
///
/// Its text is the kind, a colon, and fields: "drop:rank=1,verb=publish,nth=3",
/// "kill:rank=0,nth=5", "stall:rank=2,ms=300". The fields are rank (required), verb (reserve,
/// acquire, publish, retire), epoch, kernel, worker, step, nth, ms (delay and stall) and code
/// (exit).
struct fault {
  fault_kind kind = fault_kind::drop;
  int rank = 0;
  std::optional<channel_verb> verb = {};
  std::optional<std::uint64_t> epoch = {};
  std::optional<int> kernel = {};
  std::optional<int> worker = {};
  std::optional<int> step = {};
  std::uint64_t nth = 1;  ///< from 1, counted over all workers of the rank, in the order in which
                          ///< they execute verbs
  std::chrono::milliseconds duration{100};  ///< of a delay or a stall
  int code = 1;                             ///< of an exit

  /// Reads a text. Throws `invalid_argument`, which names the right forms.
  [[nodiscard]] static fault parse(std::string_view text);
  /// The fault that occurs at exactly this site.
  [[nodiscard]] static fault at(fault_kind kind, const fault_site& site);
  /// The text that `parse` reads.
  [[nodiscard]] std::string text() const;
  /// Whether `site` is one of those that `nth` counts.
  [[nodiscard]] bool matches(const fault_site& site) const noexcept;
};

/// Injects one fault in one run of an operator at one rank, and does nothing at other ranks. Every
/// rank has its own plan, made from the same fault; ranks that are threads may share one. It may
/// outlive operator and world.
class fault_plan final : public fault_tap {
 public:
  /// `strikes` is called just before the fault takes effect, on the worker's thread.
  explicit fault_plan(const fault& f, std::function<void(const fault_site&)> strikes = {})
      : fault_(f), strikes_(std::move(strikes)) {}
  ~fault_plan() override;

  void before(const fault_site& site) override;
  void signal(const fault_site& site, const room& target,
              const std::function<void()>& deliver) override;
  void settle() override;

  /// Whether the fault has occurred.
  [[nodiscard]] bool struck() const;
  /// The room of the affected signal, once the fault has occurred.
  [[nodiscard]] std::optional<room> target() const;

 private:
  [[nodiscard]] bool due(const fault_site& site);
  void note(const fault_site& site, const room* target = nullptr);
  void repeat_after(const fault_site& site, const room& target);

  struct kept_signal {
    fault_site site;
    room target;
    std::function<void()> deliver;
  };

  fault fault_;
  std::function<void(const fault_site&)> strikes_;
  mutable std::mutex mutex_;
  std::uint64_t seen_ = 0;  // matching sites
  bool struck_ = false;
  std::optional<room> target_;
  std::optional<kept_signal> kept_;  // to be repeated
  std::mutex late_mutex_;            // ranks that share the plan settle at the same time
  std::thread late_;                 // raises a delayed signal
};

/// Lists the sites that an operator passes, and injects nothing. Tests choose their faults from the
/// list. Every rank has its own record, as with plans.
class site_record final : public fault_tap {
 public:
  void before(const fault_site& site) override;
  /// The sites in the order in which workers executed them.
  [[nodiscard]] std::vector<fault_site> sites() const;

 private:
  mutable std::mutex mutex_;
  std::vector<fault_site> sites_;
};

}  // namespace untax
