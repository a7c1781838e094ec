#pragma once

#include <nccl.h>

#include <string>

namespace untax::bulk {

/// The functions of NCCL that are used, found in the library at run time.
struct nccl_library {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRank) init_rank = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;

  // Symmetric windows, from NCCL 2.27 on; null if the library or the header has none.
#if NCCL_VERSION_CODE >= 22700
  decltype(&::ncclMemAlloc) allocate = nullptr;
  decltype(&::ncclMemFree) free = nullptr;
  decltype(&::ncclCommWindowRegister) register_window = nullptr;
  decltype(&::ncclCommWindowDeregister) deregister_window = nullptr;
#endif

  std::string why_not;  ///< empty if all were found

  /// Loads the library the first time. It stays loaded.
  [[nodiscard]] static const nccl_library& get();
};

}  // namespace untax::bulk
