#include "energy.hpp"

#include <cuda_runtime_api.h>

#include <array>

#include "nvml.hpp"

namespace untax::gpu {

class energy_meter::driver {
 public:
  driver() {
    std::array<char, 32> bus{};
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device) != cudaSuccess) {
      cudaGetLastError();
      return;
    }
    device_ = nvml_.at(bus.data());
  }

  /// The result of an NVML function for the device, divided by 1000.
  template <class Value>
  [[nodiscard]] std::optional<double> ask(const char* function) const {
    auto* const call = nvml_.find<int(nvml_library::device, Value*)>(function);
    Value value = 0;
    if (device_ == nullptr || call == nullptr || call(device_, &value) != 0) return std::nullopt;
    return 1e-3 * static_cast<double>(value);
  }

 private:
  nvml_library nvml_;
  nvml_library::device device_ = nullptr;
};

energy_meter::energy_meter() : driver_(std::make_unique<driver>()) {}
energy_meter::~energy_meter() = default;

std::optional<double> energy_meter::joules() const {
  return driver_->ask<unsigned long long>("nvmlDeviceGetTotalEnergyConsumption");
}

std::optional<double> energy_meter::limit() const {
  return driver_->ask<unsigned>("nvmlDeviceGetEnforcedPowerLimit");
}

}  // namespace untax::gpu
