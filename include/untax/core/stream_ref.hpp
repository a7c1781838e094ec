#pragma once

struct CUstream_st;

namespace untax {

/// A CUDA stream, named without CUDA's headers: a cudaStream_t becomes one by itself. Empty where a
/// world has no streams, since its ranks are threads or processes of the host, and where a run is
/// to return when its result is complete. In a world of GPUs such a run begins behind what the
/// default stream has. The default stream itself is cudaStreamLegacy.
struct stream_ref {
  void* handle = nullptr;

  stream_ref() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a stream is passed as it is
  stream_ref(CUstream_st* stream) noexcept : handle(stream) {}
};

}  // namespace untax
