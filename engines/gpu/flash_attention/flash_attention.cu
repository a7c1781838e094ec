#include "engines/gpu/flash_attention/flash_attention.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/flash_attention/arguments.hpp"
#include "engines/gpu/flash_attention/variants/variants.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/launching.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax::gpu {
namespace {

/// Returns the shape. Throws if there is no kernel for it, or if it is invalid.
const flash_shape& checked(const flash_shape& s) {
  const auto refuse = [](errc code, const std::string& why) {
    throw error(code, "flash_attention on a GPU " + why);
  };
  if (s.type == dtype::f32) refuse(errc::unsupported, "takes fp16 and bf16, not fp32");
  if (s.head_dim != 64 && s.head_dim != 128 && s.head_dim != 256)
    refuse(
        errc::unsupported,
        fmt::format("has kernels for heads of 64, 128 and 256 elements, not for {}", s.head_dim));
  if (s.batch < 0 || s.queries < 0 || s.keys < 0)
    refuse(errc::invalid_argument, "cannot have numbers of rows below 0");
  if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0)
    refuse(errc::invalid_argument,
           fmt::format("cannot share {} heads of keys among {} of queries", s.kv_heads, s.heads));
  if (!(s.scale > 0) || !std::isfinite(s.scale))
    refuse(errc::invalid_argument, fmt::format("needs a positive scale, not {}", s.scale));
  const flash_tiles tiles = flash_tiles::of(s);
  const std::int64_t count =
      std::int64_t{tiles.batch} * tiles.heads * std::max<std::int64_t>(tiles.row_blocks, 1);
  if (count >= std::int64_t{1} << 30U)
    refuse(errc::unsupported, fmt::format("takes 2^30 tiles at most, not {}", count));
  return s;
}

flash_kernel kernel_for(const flash_shape& s) {
  switch (s.head_dim) {
    case 64:
      return flash_attention_of_width_64(s.type, s.causal);
    case 128:
      return flash_attention_of_width_128(s.type, s.causal);
    default:
      return flash_attention_of_width_256(s.type, s.causal);
  }
}

flash_target target_here() {
  return {static_cast<std::size_t>(attribute_here(cudaDevAttrL2CacheSize)), num_sms_here()};
}

}  // namespace

class flash_runner::launcher {
 public:
  launcher(const flash_shape& shape, const std::vector<std::int32_t>& table,
           const flash_queues* queues)
      : kernel_(kernel_for(checked(shape))),
        config_(flash_config::of(shape.head_dim, shape.causal)) {
    require_hopper();
    load_kernel(kernel_.function, "cannot load the kernel of attention");
    gpu::require(cudaFuncSetAttribute(kernel_.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(kernel_.shared_bytes)),
                 "there is not enough shared memory for attention");
    a_.shape = shape;
    a_.tiles = flash_tiles::of(shape);
    a_.scale_to_base_2 = shape.scale * std::numbers::log2e_v<float>;
    blocks_ = std::min(num_sms_here(), a_.tiles.count());
    if (static_cast<std::size_t>(a_.tiles.count()) != table.size())
      throw error(errc::invalid_argument,
                  fmt::format("flash_attention: an order of {} tiles, and there are {}",
                              table.size(), a_.tiles.count()));
    int* const counters = static_cast<int*>(counters_.allocate(3 * sizeof(int), "flash_attention"));
    a_.positions = {nullptr, a_.tiles.count(), a_.tiles.count(), counters};
    a_.left = counters + 2;
    if (queues != nullptr) use(*queues);
    const std::size_t bytes = table.size() * sizeof(std::int32_t);
    if (bytes == 0) return;
    void* const order = order_.allocate(bytes, "flash_attention");
    upload(order, table.data(), bytes, "cannot store an order of tiles");
    a_.order = static_cast<const std::int32_t*>(order);
  }

  void run(const flash_operands& o, cudaStream_t stream) const {
    if (blocks_ == 0) return;
    const flash_shape& s = a_.shape;
    flash_arguments a = a_;
    const matrix_at queries{o.queries, o.query_rows, std::int64_t{s.heads} * s.head_dim,
                            o.queries_stride};
    a.queries = tensor_map_of(queries, s.type, {config_.rows()});
    const std::int64_t columns = std::int64_t{s.kv_heads} * s.head_dim;
    // Without keys nothing is read, but a tensor map has to describe valid memory.
    const bool none = o.key_rows == 0;
    a.keys =
        none ? a.queries
             : sequences_map_of({o.keys, o.key_rows, columns, o.keys_stride}, s.type, config_.keys);
    a.values = none ? a.queries
                    : sequences_map_of({o.values, o.key_rows, columns, o.values_stride}, s.type,
                                       config_.keys);
    a.out = o.out;
    a.out_stride = o.out_stride;
    a.log_sums = o.log_sums;
    a.query_begins = o.query_begins;
    a.key_begins = o.key_begins;
    cudaLaunchConfig_t launch =
        gpu::launch_of(blocks_, config_.threads(), kernel_.shared_bytes, stream);
    void* parameters[] = {&a};
    gpu::require(cudaLaunchKernelExC(&launch, kernel_.function, parameters),
                 "cannot start attention");
  }

 private:
  void use(const flash_queues& queues) {
    const bool known = std::ranges::all_of(queues.of_sm, [](auto queue) { return queue <= 1; });
    if (!known || queues.of_sm.size() < static_cast<std::size_t>(num_sms_here()) ||
        queues.second < 0 || queues.second > a_.tiles.count())
      throw error(
          errc::invalid_argument,
          fmt::format("flash_attention: queues of {} multiprocessors, the second one from "
                      "tile {} on; there are {} multiprocessors, {} tiles, and queues 0 "
                      "and 1",
                      queues.of_sm.size(), queues.second, num_sms_here(), a_.tiles.count()));
    void* const of_sm = queues_.allocate(queues.of_sm.size(), "flash_attention");
    upload(of_sm, queues.of_sm.data(), queues.of_sm.size(),
           "cannot store queues of multiprocessors");
    a_.positions.queue_of_sm = static_cast<const std::uint8_t*>(of_sm);
    a_.positions.second = queues.second;
  }

  flash_kernel kernel_;
  flash_config config_;
  flash_arguments a_{};
  int blocks_ = 0;
  scratch_memory counters_;
  scratch_memory order_;
  scratch_memory queues_;
};

flash_runner::flash_runner(const flash_shape& shape, order::attention_order how)
    : flash_runner(shape, flash_order_table(checked(shape), how, target_here())) {}
flash_runner::flash_runner(const flash_shape& shape, const std::vector<std::int32_t>& table)
    : launcher_(std::make_unique<launcher>(shape, table, nullptr)) {}
flash_runner::flash_runner(const flash_shape& shape, const std::vector<std::int32_t>& table,
                           const flash_queues& queues)
    : launcher_(std::make_unique<launcher>(shape, table, &queues)) {}
flash_runner::flash_runner(flash_runner&&) noexcept = default;
flash_runner& flash_runner::operator=(flash_runner&&) noexcept = default;
flash_runner::~flash_runner() = default;

void flash_runner::run(const flash_operands& operands, stream_ref stream) const {
  launcher_->run(operands, static_cast<cudaStream_t>(stream.handle));
}

}  // namespace untax::gpu
