#include "engines/bulk/cuda/window.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/bulk/cuda/nccl_library.hpp"

namespace untax::bulk {
namespace {

[[noreturn]] void refuse(const world& w, std::string_view why) {
  throw error(errc::unsupported,
              fmt::format("rank {}: NCCL has no symmetric windows: {}", w.rank(), why));
}

}  // namespace

#if NCCL_VERSION_CODE >= 22700

window::window(const world& w, const communicator& c, std::size_t bytes)
    : communicator_(c.handle()) {
  const nccl_library& library = nccl_library::get();
  if (library.register_window == nullptr || library.deregister_window == nullptr ||
      library.allocate == nullptr || library.free == nullptr)
    refuse(w, nccl().text + " is older than 2.27");
  if (const ncclResult_t result = library.allocate(&data_, bytes); result != ncclSuccess) {
    throw error(errc::out_of_memory, fmt::format("rank {}: ncclMemAlloc of {} bytes: {}", w.rank(),
                                                 bytes, library.error_string(result)));
  }
  ncclWindow_t handle = nullptr;
  const ncclResult_t result = library.register_window(static_cast<ncclComm_t>(communicator_), data_,
                                                      bytes, &handle, NCCL_WIN_COLL_SYMMETRIC);
  if (result != ncclSuccess || handle == nullptr) {
    (void)library.free(data_);
    refuse(w, result != ncclSuccess ? library.error_string(result)
                                    : "ncclCommWindowRegister returned no window on this machine");
  }
  handle_ = handle;
}

window::~window() {
  const nccl_library& library = nccl_library::get();
  (void)library.deregister_window(static_cast<ncclComm_t>(communicator_),
                                  static_cast<ncclWindow_t>(handle_));
  (void)library.free(data_);
}

#else

window::window(const world& w, const communicator& c, std::size_t /*bytes*/)
    : communicator_(c.handle()) {
  refuse(w, "untax was built with the nccl.h of a version before 2.27");
}
window::~window() = default;

#endif

}  // namespace untax::bulk
