#pragma once

#include <memory>
#include <optional>

namespace untax::gpu {

/// The energy that the current device has used. The driver updates its counter some tens of times a
/// second.
class energy_meter {
 public:
  energy_meter();
  energy_meter(const energy_meter&) = delete;
  energy_meter& operator=(const energy_meter&) = delete;
  ~energy_meter();

  /// Joules since the driver was loaded; nothing if the driver does not report them.
  [[nodiscard]] std::optional<double> joules() const;
  /// The enforced power limit in watts; nothing if the driver does not report it.
  [[nodiscard]] std::optional<double> limit() const;

 private:
  class driver;
  std::unique_ptr<driver> driver_;
};

}  // namespace untax::gpu
