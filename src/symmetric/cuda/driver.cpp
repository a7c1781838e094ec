#include "driver.hpp"

#include <map>
#include <mutex>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::gpu {
namespace {

// No function in the table has changed its signature since this version.
constexpr unsigned asked_version = 12000;

template <class Function>
void look_up(Function& to, const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult how{};
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &function, asked_version, cudaEnableDefault, &how);
  if (result != cudaSuccess || how != cudaDriverEntryPointSuccess || function == nullptr) {
    cudaGetLastError();
    throw error(errc::unsupported,
                fmt::format("the CUDA driver has no {} ({}); GPU worlds need driver 525 or newer",
                            name, text_of(result)));
  }
  to = reinterpret_cast<Function>(function);
}

driver_calls load() {
  driver_calls d{};
  look_up(d.init, "cuInit");
  look_up(d.error_name, "cuGetErrorName");
  look_up(d.error_string, "cuGetErrorString");
  look_up(d.retain_context, "cuDevicePrimaryCtxRetain");
  look_up(d.push_context, "cuCtxPushCurrent");
  look_up(d.pop_context, "cuCtxPopCurrent");
  look_up(d.attribute, "cuDeviceGetAttribute");
  look_up(d.pointer_attribute, "cuPointerGetAttribute");
  look_up(d.granularity, "cuMemGetAllocationGranularity");
  look_up(d.create, "cuMemCreate");
  look_up(d.release, "cuMemRelease");
  look_up(d.reserve, "cuMemAddressReserve");
  look_up(d.free_addresses, "cuMemAddressFree");
  look_up(d.map, "cuMemMap");
  look_up(d.unmap, "cuMemUnmap");
  look_up(d.set_access, "cuMemSetAccess");
  look_up(d.export_handle, "cuMemExportToShareableHandle");
  look_up(d.import_handle, "cuMemImportFromShareableHandle");
  if (const CUresult result = d.init(0); result != CUDA_SUCCESS) {
    throw error(errc::unsupported,
                fmt::format("the CUDA driver does not start (error {})", static_cast<int>(result)));
  }
  return d;
}

}  // namespace

const driver_calls& driver() {
  static const driver_calls loaded = load();
  return loaded;
}

std::string text_of(CUresult result) {
  const char* name = nullptr;
  const char* meaning = nullptr;
  driver().error_name(result, &name);
  driver().error_string(result, &meaning);
  return fmt::format("{} ({})", name != nullptr ? name : "an unknown error",
                     meaning != nullptr ? meaning : std::to_string(static_cast<int>(result)));
}

std::string text_of(cudaError_t result) {
  return fmt::format("{} ({})", cudaGetErrorName(result), cudaGetErrorString(result));
}

void require(CUresult result, const std::string& what) {
  if (result == CUDA_SUCCESS) return;
  throw error(errc::internal, fmt::format("{}: {}", what, text_of(result)));
}

void require(cudaError_t result, const std::string& what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  if (result < cudaErrorStreamCaptureUnsupported || result > cudaErrorStreamCaptureWrongThread)
    throw error(errc::internal, fmt::format("{}: {}", what, text_of(result)));
  throw error(
      errc::unsupported,
      fmt::format(
          "this cannot be done while a stream is captured in a graph; make worlds and operators "
          "before the capture, those of torch.ops.untax by making the same call once ({}: {})",
          what, text_of(result)));
}

CUcontext context_of(int device) {
  static std::mutex mutex;
  static std::map<int, CUcontext> contexts;
  const std::lock_guard lock(mutex);
  const auto known = contexts.find(device);
  if (known != contexts.end()) return known->second;
  CUcontext context = nullptr;
  require(driver().retain_context(&context, device), fmt::format("cannot use GPU {}", device));
  contexts.emplace(device, context);
  return context;
}

device_scope::device_scope(CUcontext context) {
  require(driver().push_context(context), "cannot make the context of a device current");
}

device_scope::~device_scope() {
  CUcontext popped = nullptr;
  driver().pop_context(&popped);
}

}  // namespace untax::gpu
