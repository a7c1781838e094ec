#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace untax::gpu {

/// What a stream is for. Ranks that share a GPU have one of each kind, whatever operators they
/// have.
enum class stream_use : int {
  own,   ///< an operator's, for callers who give none
  side,  ///< for what runs beside a caller's stream
  kinds,
};

/// From now on the streams of this process are those of ranks that share GPUs; `world::local_gpus`
/// says so.
void share_streams() noexcept;
/// A stream of the current device: of its own, or, where ranks share GPUs, the one that the calling
/// thread has for this use, since a rank is a thread. Throws `internal` if there is none to be had.
[[nodiscard]] std::shared_ptr<CUstream_st> stream_for(stream_use use);
/// How many streams there are for ranks that share `device`.
[[nodiscard]] int shared_streams(int device);

}  // namespace untax::gpu
