#include "vmm.hpp"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>

#include "src/symmetric/device_memory.hpp"

namespace untax::gpu {

CUmemAllocationProp properties(int device, bool shared) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = device;
  p.requestedHandleTypes =
      shared ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  return p;
}

allocation allocation::make(int rank, int device, std::size_t bytes, bool shared) {
  const CUmemAllocationProp how = properties(device, shared);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = driver().create(&handle, bytes, &how, 0);
  if (result == CUDA_SUCCESS) return allocation(handle);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) {
    require(result,
            fmt::format("rank {}: cannot make {} on GPU {}", rank, format_bytes(bytes), device));
  }
  const device_scope scope(context_of(device));
  std::size_t available = 0;
  std::size_t total = 0;
  require(cudaMemGetInfo(&available, &total), fmt::format("rank {}: GPU {}", rank, device));
  throw error(
      errc::out_of_memory,
      fmt::format("rank {}: no room for {} of a symmetric heap on GPU {}, {}: {} of {} are free; "
                  "free more of it, or take a smaller heap ({}, or the world's option)",
                  rank, format_bytes(bytes), device, device_name(device), format_bytes(available),
                  format_bytes(total), variable::heap_bytes.name));
}

allocation allocation::import(int rank, int descriptor) {
  CUmemGenericAllocationHandle handle = 0;
  void* const how =
      reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor));  // the form that CUDA takes
  require(driver().import_handle(&handle, how, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          fmt::format("cannot take over the symmetric heap of rank {}", rank));
  return allocation(handle);
}

allocation::allocation(allocation&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}

allocation& allocation::operator=(allocation&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

allocation::~allocation() {
  if (handle_ != 0) driver().release(handle_);
}

address_range::address_range(int parts, std::size_t part_bytes, std::size_t page)
    : bytes_(static_cast<std::size_t>(parts) * part_bytes), part_bytes_(part_bytes) {
  require(
      driver().reserve(&base_, bytes_, page, 0, 0),
      fmt::format("cannot reserve {} of addresses for the symmetric heaps of {} ranks; they have "
                  "to be smaller ({}, or the world's option)",
                  format_bytes(bytes_), parts, variable::heap_limit.name));
}

address_range::~address_range() {
  for (const mapping& m : mapped_) driver().unmap(m.at, m.bytes);
  driver().free_addresses(base_, bytes_);
}

void address_range::map(int part, std::size_t offset, std::size_t bytes, const allocation& memory) {
  const std::lock_guard lock(mutex_);
  mapped_.reserve(mapped_.size() + 1);
  require(driver().map(at(part) + offset, bytes, 0, memory.handle(), 0),
          fmt::format("cannot map the symmetric heap of rank {}", part));
  mapped_.push_back({at(part) + offset, bytes});
}

CUresult address_range::allow(int part, std::size_t offset, std::size_t bytes,
                              const std::vector<int>& devices) const {
  std::vector<CUmemAccessDesc> rights;
  for (const int device : devices) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    rights.push_back(access);
  }
  return driver().set_access(at(part) + offset, bytes, rights.data(), rights.size());
}

}  // namespace untax::gpu
