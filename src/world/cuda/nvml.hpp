#pragma once

#include <dlfcn.h>

#include <memory>

namespace untax::gpu {

/// The management library of NVIDIA's driver. It is loaded at run time, so neither its header nor
/// the library is needed to build or start. Its functions return 0 for success.
class nvml_library {
 public:
  using device = void*;

  nvml_library() {
    auto* const start = find<int()>("nvmlInit_v2");
    stop_ = find<int()>("nvmlShutdown");
    if (start == nullptr || stop_ == nullptr || start() != 0) stop_ = nullptr;
  }
  nvml_library(const nvml_library&) = delete;
  nvml_library& operator=(const nvml_library&) = delete;
  ~nvml_library() {
    if (stop_ != nullptr) stop_();
  }

  /// Whether the library is installed and has been initialised.
  [[nodiscard]] bool works() const noexcept { return stop_ != nullptr; }

  /// The function `name`; null if the library has none.
  template <class Function>
  [[nodiscard]] Function* find(const char* name) const {
    return handle_ ? reinterpret_cast<Function*>(dlsym(handle_.get(), name)) : nullptr;
  }

  /// The GPU at a PCI bus address; null if there is none.
  [[nodiscard]] device at(const char* bus) const {
    auto* const by_bus = find<int(const char*, device*)>("nvmlDeviceGetHandleByPciBusId_v2");
    device handle = nullptr;
    if (!works() || by_bus == nullptr || by_bus(bus, &handle) != 0) return nullptr;
    return handle;
  }

 private:
  std::unique_ptr<void, int (*)(void*)> handle_{
      dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL),
      [](void* h) { return h != nullptr ? dlclose(h) : 0; }};
  int (*stop_)() = nullptr;
};

}  // namespace untax::gpu
