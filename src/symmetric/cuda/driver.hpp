#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

namespace untax::gpu {

/// The functions of the driver that untax calls. They are looked up on first use, so that programs
/// run on machines without a driver as long as they use no GPU.
struct driver_calls {
  decltype(&cuInit) init;
  decltype(&cuGetErrorName) error_name;
  decltype(&cuGetErrorString) error_string;
  decltype(&cuDevicePrimaryCtxRetain) retain_context;
  decltype(&cuCtxPushCurrent) push_context;
  decltype(&cuCtxPopCurrent) pop_context;
  decltype(&cuDeviceGetAttribute) attribute;
  decltype(&cuPointerGetAttribute) pointer_attribute;
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) free_addresses;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemExportToShareableHandle) export_handle;
  decltype(&cuMemImportFromShareableHandle) import_handle;
};

/// Throws `unsupported` if there is no driver, or one that lacks a function.
[[nodiscard]] const driver_calls& driver();

/// The name and meaning of an error: "CUDA_ERROR_INVALID_VALUE (invalid argument)".
[[nodiscard]] std::string text_of(CUresult result);
[[nodiscard]] std::string text_of(cudaError_t result);

/// Throws `internal` with `what` unless the call succeeded; `unsupported` if it failed since a
/// stream is being captured. Clears the last error of the runtime, so that later calls do not
/// report it.
void require(CUresult result, const std::string& what);
void require(cudaError_t result, const std::string& what);

/// The primary context of `device`, which the runtime uses. It is retained until the process ends.
[[nodiscard]] CUcontext context_of(int device);

/// Makes a device current during its lifetime, then restores the previous one. Unlike
/// cudaSetDevice, it does not initialise a device that the thread never used.
class device_scope {
 public:
  explicit device_scope(CUcontext context);
  device_scope(const device_scope&) = delete;
  device_scope& operator=(const device_scope&) = delete;
  ~device_scope();
};

}  // namespace untax::gpu
