#include "engines/gpu/launch/operator_launcher.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/launch/this_gpu.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax::gpu {

operator_launcher::operator_launcher(world& w, std::string_view name, launcher_streams streams)
    : world_(&w.stable_view()), name_(name) {
  if (streams.own) own_.emplace();
  for (int i = 0; i < streams.side; ++i) side_.emplace_back();
  require_queues(*world_);
  trace_ = operator_trace::open(*world_, name_);
}

operator_launcher::~operator_launcher() {
  // Before the dry run no kernel was launched that waits for a peer, or for which a peer waits.
  if (!ready_ || kernels_ended(*world_)) return;
  for (owned& one : memory_) std::visit([](auto& memory) { memory.abandon(); }, one);
}

void operator_launcher::require_at_most(int ranks) const {
  if (world_->size() <= ranks) return;
  throw error(errc::unsupported,
              fmt::format("rank {}: {} on GPUs has {} ranks at most; this world has {}",
                          world_->rank(), name_, ranks, world_->size()));
}

std::uint64_t* operator_launcher::own_words(int count) {
  const std::size_t bytes = static_cast<std::size_t>(std::max(count, 1)) * sizeof(std::uint64_t);
  return static_cast<std::uint64_t*>(own_memory_.emplace_back().allocate(bytes, name_.c_str()));
}

const void* operator_launcher::copy_of(const void* data, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* const copy = own_memory_.emplace_back().allocate(bytes, name_.c_str());
  upload(copy, data, bytes, "cannot hand a table over");
  return copy;
}

run_arguments operator_launcher::arguments(int element_bytes, int threads) const {
  run_arguments run;
  if (trace_) static_cast<launch_trace&>(run) = trace_->launches(threads);
  run.world = world_->device_state();
  run.element_bytes = element_bytes;
  run.name_size = static_cast<int>(std::min(name_.size(), sizeof run.name));
  std::memcpy(run.name, name_.data(), static_cast<std::size_t>(run.name_size));
  return run;
}

cudaStream_t operator_launcher::stream_of(stream_ref given) const {
  if (given.handle != nullptr) return static_cast<cudaStream_t>(given.handle);
  follow_default(own_->get());
  return own_->get();
}

whole_run operator_launcher::begin(cudaStream_t stream) const {
  world_->check();
  require_stream(*world_, stream);
  if (trace_) trace_->called(gpu::captures(stream));
  return whole_run(*world_);
}

void operator_launcher::launch(const kernel_start_form& form, cudaStream_t stream,
                               void** arguments) const {
  const int together = in_pairs(form.blocks) ? std::max(form.together, 2) : form.together;
  cudaLaunchAttribute attributes[] = {programmatic_launch(form.early && starts_early()),
                                      in_clusters(together)};
  cudaLaunchConfig_t config = launch_of(form.blocks, form.threads, form.shared_bytes, stream);
  config.attrs = attributes;
  config.numAttrs = together > 1 ? 2 : 1;
  require(cudaLaunchKernelExC(&config, form.kernel, arguments),
          "cannot be launched; the rank's GPU has to be the current device");
}

void operator_launcher::wait(cudaStream_t stream, const char* failure) const {
  require(cudaStreamSynchronize(stream), failure);
}

void operator_launcher::copy_result(void* to, const void* from, std::size_t bytes, whole_run& run,
                                    cudaStream_t stream) const {
  if (to == from) return;
  run([&] {
    require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
            "cannot copy its result");
  });
}

void operator_launcher::require(cudaError_t result, const char* failure) const {
  if (result == cudaSuccess) return;
  gpu::require(result, fmt::format("rank {}: {}: {}", world_->rank(), name_, failure));
}

void operator_launcher::prepare(const void* kernel, std::size_t shared_bytes) const {
  load_kernel(kernel, "cannot load its kernel");
  if (shared_bytes == 0) return;
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          "there is not enough shared memory");
}

}  // namespace untax::gpu
