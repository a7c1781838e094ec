#include "engines/bulk/cuda/nccl_library.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include <fmt/format.h>

namespace untax::bulk {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function, std::string& why_not) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && why_not.empty())
    why_not = fmt::format("libnccl.so.2 has no {}; NCCL 2.18 or later is needed", name);
}

nccl_library load() {
  nccl_library l;
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe): of this thread
    l.why_not =
        fmt::format("libnccl.so.2 cannot be loaded: {}; LD_LIBRARY_PATH can name its folder",
                    reason != nullptr ? reason : "no reason given");
    return l;
  }
  find(library, "ncclGetVersion", l.get_version, l.why_not);
  find(library, "ncclGetErrorString", l.error_string, l.why_not);
  find(library, "ncclGetUniqueId", l.get_unique_id, l.why_not);
  find(library, "ncclCommInitRank", l.init_rank, l.why_not);
  find(library, "ncclCommDestroy", l.destroy, l.why_not);
  find(library, "ncclAllGather", l.all_gather, l.why_not);
  find(library, "ncclReduceScatter", l.reduce_scatter, l.why_not);
  find(library, "ncclAllReduce", l.all_reduce, l.why_not);
  find(library, "ncclBroadcast", l.broadcast, l.why_not);
  find(library, "ncclSend", l.send, l.why_not);
  find(library, "ncclRecv", l.receive, l.why_not);
  find(library, "ncclGroupStart", l.group_start, l.why_not);
  find(library, "ncclGroupEnd", l.group_end, l.why_not);
#if NCCL_VERSION_CODE >= 22700
  std::string no_windows;
  find(library, "ncclMemAlloc", l.allocate, no_windows);
  find(library, "ncclMemFree", l.free, no_windows);
  find(library, "ncclCommWindowRegister", l.register_window, no_windows);
  find(library, "ncclCommWindowDeregister", l.deregister_window, no_windows);
#endif
  return l;
}

}  // namespace

const nccl_library& nccl_library::get() {
  static const nccl_library library = load();
  return library;
}

}  // namespace untax::bulk
