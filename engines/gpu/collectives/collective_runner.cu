#include "engines/gpu/collectives/collective_runner.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/launch/num_sms.hpp"
#include "engines/gpu/launch/whole_run.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/stream.hpp"
#include "src/symmetric/queues.hpp"

namespace untax::gpu {

class collective_runner::launcher {
 public:
  launcher(world& w, const std::string& name, transfer_code code)
      : world_(&w.stable_view()), name_(name), code_(std::move(code)) {
    load();
    require_room();
    const auto blocks =
        static_cast<std::size_t>(std::accumulate(code_.blocks.begin(), code_.blocks.end(), 0));
    const auto counters = static_cast<std::size_t>(std::max(code_.counters, 1));
    run_.world = world_->device_state();
    inbox_ = world_->allocate_owned_cleared<std::byte>(std::max<std::size_t>(code_.inbox_bytes, 16),
                                                       name + " inbox");
    counters_ = world_->allocate_owned_cleared<std::uint64_t>(counters, name + " counters");
    epochs_ = world_->allocate_owned_cleared<std::uint64_t>(blocks, name + " epochs");
    run_.inbox = inbox_.get();
    run_.counters = counters_.get();
    run_.element_bytes = code_.element_bytes;
    run_.name_size = static_cast<int>(std::min(name.size(), sizeof run_.name));
    std::memcpy(run_.name, name.data(), static_cast<std::size_t>(run_.name_size));
    // The first launch may have to make room for stacks, which must not happen while peers wait.
    run_.launch = -1;
    launch(1, own_.get());
    require(cudaStreamSynchronize(own_.get()), "cannot run its kernels");
  }
  launcher(const launcher&) = delete;
  launcher& operator=(const launcher&) = delete;

  ~launcher() {
    try {
      world_->use_device();
      if (ends_with_others(*world_)) {
        world_->barrier();
        return;
      }
    } catch (const error&) {
      // A stopped world has no meetings; its memory goes with it.
    }
    inbox_.abandon();
    counters_.abandon();
    epochs_.abandon();
  }

  void run(const void* in, void* out, std::int64_t between, stream_ref stream) {
    world_->check();
    require_no_graph(*world_, static_cast<cudaStream_t>(stream.handle));
    require_reachable("in", in, known_in_);
    require_reachable("out", out, known_out_);
    run_.in = static_cast<const std::byte*>(in);
    run_.out = static_cast<std::byte*>(out);
    run_.between = between;
    auto* target = static_cast<cudaStream_t>(stream.handle);
    const bool waits = target == nullptr;
    if (waits) target = own_.get();
    std::size_t before = 0;
    whole_run all(*world_);
    for (std::size_t i = 0; i < code_.blocks.size(); ++i) {
      run_.launch = static_cast<int>(i);
      run_.epochs = epochs_->local(before);
      all([&] { launch(code_.blocks[i], target); });
      before += static_cast<std::size_t>(code_.blocks[i]);
    }
    if (!waits) return;
    require(cudaStreamSynchronize(target), "a kernel failed");
    world_->check();
  }

 private:
  void require(cudaError_t result, const char* what) const {
    gpu::require(result, fmt::format("rank {}: {}: {}", world_->rank(), name_, what));
  }

  void load() {
    cudaFuncAttributes found{};
    require(cudaFuncGetAttributes(&found, code_.kernel), "cannot load its kernel");
    if (code_.shared_bytes == 0) return;
    require(cudaFuncSetAttribute(code_.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(code_.shared_bytes)),
            "there is not enough shared memory");
  }

  /// Blocks wait for blocks of peers, so all of them have to run at the same time.
  void require_room() const {
    int each = 0;
    const int num_sms = num_sms_of(*world_);
    require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, code_.kernel, code_.threads,
                                                          code_.shared_bytes),
            "cannot ask for the number of blocks");
    require_queues(*world_);
    const int asked = *std::max_element(code_.blocks.begin(), code_.blocks.end());
    const int most = most_blocks_at_once(each, num_sms, world_->ranks_per_gpu());
    if (asked <= most) return;
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {} blocks of {} threads; this GPU holds {} at once{}, "
                            "option workers has to be smaller",
                            world_->rank(), name_, asked, code_.threads, most,
                            world_->ranks_per_gpu() > 1 ? " for each rank that shares it" : ""));
  }

  /// Remembers the last address that was right, since asking takes as long as a launch.
  void require_reachable(const char* what, const void* p, const void*& known) const {
    if (p == nullptr || p == known) return;
    cudaPointerAttributes found{};
    require(cudaPointerGetAttributes(&found, p), "cannot ask about an address");
    if (found.type == cudaMemoryTypeUnregistered) {
      throw error(errc::invalid_argument,
                  fmt::format("rank {}: {}: {} lies at {}, in memory of the host that GPU {} "
                              "cannot reach; it has to be in memory of the GPU",
                              world_->rank(), name_, what, fmt::ptr(p), world_->device()));
    }
    known = p;
  }

  void launch(int blocks, cudaStream_t stream) {
    void* arguments[] = {code_.first_argument.data(), &run_};
    require(cudaLaunchKernel(code_.kernel, dim3(static_cast<unsigned>(blocks)),
                             dim3(static_cast<unsigned>(code_.threads)), arguments,
                             code_.shared_bytes, stream),
            "cannot be launched; the rank's GPU has to be the current device");
  }

  world* world_;
  std::string name_;
  transfer_code code_;
  gpu::stream own_;
  run_arguments run_;
  owned_symmetric<std::byte> inbox_;
  owned_symmetric<std::uint64_t> counters_;
  owned_symmetric<std::uint64_t> epochs_;
  const void* known_in_ = nullptr;
  const void* known_out_ = nullptr;
};

collective_runner::collective_runner(world& w, const std::string& name, transfer_code&& code) {
  // Its stream is made before anything else of it.
  w.use_device();
  launcher_ = std::make_unique<launcher>(w, name, std::move(code));
}
collective_runner::~collective_runner() = default;

bool collective_runner::captures(stream_ref stream) const {
  return gpu::captures(static_cast<cudaStream_t>(stream.handle));
}

void collective_runner::run(const void* in, void* out, std::int64_t between, stream_ref stream) {
  launcher_->run(in, out, between, stream);
}

}  // namespace untax::gpu
