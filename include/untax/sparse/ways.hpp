#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <untax/core/host_device.hpp>
#include <untax/sparse/split.hpp>

namespace untax::sparse {

/// Algorithms that compute y = alpha A x + beta y. All but those of cuSPARSE exist for threads of
/// the host and for GPUs. A block is a block of a kernel; on the host a thread stands for it.
enum class spmv_kernel {
  csr_thread,      ///< a thread adds a row
  csr_warp2,       ///< 2 lanes of a warp add a row
  csr_warp4,       ///< 4
  csr_warp8,       ///< 8
  csr_warp16,      ///< 16
  csr_warp32,      ///< a whole warp adds a row
  csr_mixed4,      ///< 4 lanes add a row; a whole block adds a long one
  csr_mixed16,     ///< 16
  csr_block,       ///< a block adds a row
  csr_adaptive,    ///< a block has whole rows with about as many elements
  csr_merge_path,  ///< each block has the same number of rows plus elements
  csr_balanced,    ///< each block has the same number of elements
  coo,             ///< as csr_balanced, with the row of each element stored
  ell,             ///< all rows padded to the longest, stored by columns
  sellp,           ///< rows padded to the longest of their slice
  cusparse_csr1,   ///< cuSPARSE's first algorithm for CSR
  cusparse_csr2,   ///< cuSPARSE's second algorithm for CSR; its bits are the same in each run
  cusparse_coo,    ///< cuSPARSE's algorithm for COO
  cusparse_sell,   ///< cuSPARSE's algorithm for sliced ELL, with the slices of sellp
};
inline constexpr std::array all_spmv_kernels = {spmv_kernel::csr_thread,
                                                spmv_kernel::csr_warp2,
                                                spmv_kernel::csr_warp4,
                                                spmv_kernel::csr_warp8,
                                                spmv_kernel::csr_warp16,
                                                spmv_kernel::csr_warp32,
                                                spmv_kernel::csr_mixed4,
                                                spmv_kernel::csr_mixed16,
                                                spmv_kernel::csr_block,
                                                spmv_kernel::csr_adaptive,
                                                spmv_kernel::csr_merge_path,
                                                spmv_kernel::csr_balanced,
                                                spmv_kernel::coo,
                                                spmv_kernel::ell,
                                                spmv_kernel::sellp,
                                                spmv_kernel::cusparse_csr1,
                                                spmv_kernel::cusparse_csr2,
                                                spmv_kernel::cusparse_coo,
                                                spmv_kernel::cusparse_sell};

/// The content of a unit of work: its elements, and their rows.
enum class unit_of_work {
  row,         ///< one row
  whole_rows,  ///< the rows that end within a number of steps of the merge path
  path,        ///< a number of steps of the merge path; a row belongs to the unit in which it ends
  elements,    ///< a number of elements; a row belongs to the unit in which it begins
  slice,       ///< a number of rows, padded to the longest
  library,     ///< a unit of the library
};

/// The order in which the terms of a row are added. It depends only on the matrix, unless
/// `spmv_way` says otherwise.
enum class row_sum {
  serial,    ///< one after the other
  lanes,     ///< lane l has elements l, l + lanes, ...; lanes are added in a tree of halves, those
             ///< of a warp first; `lanes_of_row` is their number
  segments,  ///< parts of a unit by a segmented scan, parts in several units in the order of the
             ///< units
  library,
};

/// The contract of an algorithm. Any implementation of it
/// - has each element in exactly one unit, and writes each row once, also an empty one;
/// - adds in the order of `sum`; parts of a row in other units than its own are added after that,
///   in the order of units or, if `ordered` is false, in any order;
/// - does not read y if beta is 0, and reads no x for padding.
/// tests/sparse/contract.hpp tests all of this.
struct spmv_way {
  std::string_view name;
  unit_of_work unit = unit_of_work::row;
  row_sum sum = row_sum::serial;
  int lanes = 1;           ///< lanes that share a row
  bool on_host = true;     ///< false: needs a GPU
  bool same_threads_only;  ///< on the host the bits depend on the number of threads
  bool ordered = true;     ///< on GPUs the bits are the same in each run
  bool mixed = false;      ///< more lanes share a long row, see `lanes_of_row`
};

namespace detail {
inline constexpr int block_lanes = 256;
/// Threads of a block whose lanes share rows.
inline constexpr int long_row_lanes = 128;
inline constexpr std::array<spmv_way, all_spmv_kernels.size()> spmv_ways = {{
    {"csr_thread", unit_of_work::row, row_sum::serial, 1, true, false, true},
    {"csr_warp2", unit_of_work::row, row_sum::lanes, 2, true, false, true},
    {"csr_warp4", unit_of_work::row, row_sum::lanes, 4, true, false, true},
    {"csr_warp8", unit_of_work::row, row_sum::lanes, 8, true, false, true},
    {"csr_warp16", unit_of_work::row, row_sum::lanes, 16, true, false, true},
    {"csr_warp32", unit_of_work::row, row_sum::lanes, 32, true, false, true},
    {"csr_mixed4", unit_of_work::row, row_sum::lanes, 4, true, false, true, true},
    {"csr_mixed16", unit_of_work::row, row_sum::lanes, 16, true, false, true, true},
    {"csr_block", unit_of_work::row, row_sum::lanes, block_lanes, true, false, true},
    {"csr_adaptive", unit_of_work::whole_rows, row_sum::lanes, 0, true, false, true},
    {"csr_merge_path", unit_of_work::path, row_sum::segments, 0, true, true, true},
    {"csr_balanced", unit_of_work::elements, row_sum::segments, 0, true, true, true},
    {"coo", unit_of_work::elements, row_sum::segments, 0, true, true, false},
    {"ell", unit_of_work::slice, row_sum::serial, 1, true, false, true},
    {"sellp", unit_of_work::slice, row_sum::serial, 1, true, false, true},
    {"cusparse_csr1", unit_of_work::library, row_sum::library, 0, false, false, false},
    {"cusparse_csr2", unit_of_work::library, row_sum::library, 0, false, false, true},
    {"cusparse_coo", unit_of_work::library, row_sum::library, 0, false, false, false},
    {"cusparse_sell", unit_of_work::library, row_sum::library, 0, false, false, false},
}};
}  // namespace detail

/// The contract of `kernel`.
[[nodiscard]] constexpr const spmv_way& way_of(spmv_kernel kernel) noexcept {
  return detail::spmv_ways[static_cast<std::size_t>(kernel)];
}
/// "csr_thread" and so on.
[[nodiscard]] constexpr std::string_view name_of(spmv_kernel kernel) noexcept {
  return way_of(kernel).name;
}
/// The number of lanes that add a row of `elements` elements. In a mixed way all threads of a block
/// add a row that has more than 64 elements for each of its lanes, after the other rows of the
/// block. So a long row costs little although no property of the rows was computed before.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int lanes_of_row(int lanes, bool mixed,
                                                           std::int64_t elements) noexcept {
  return mixed && elements > std::int64_t{64} * lanes ? detail::long_row_lanes : lanes;
}
/// Whether y has the same bits for any number of threads of the host. Ways that split rows between
/// threads have the same bits only for the same number of threads.
[[nodiscard]] constexpr bool is_reproducible(spmv_kernel kernel) noexcept {
  return way_of(kernel).on_host && !way_of(kernel).same_threads_only;
}
/// Whether y has the same bits in each run on a GPU.
[[nodiscard]] constexpr bool is_reproducible_on_gpu(spmv_kernel kernel) noexcept {
  return way_of(kernel).ordered;
}

/// The number of units of a matrix, if a unit has `size` steps of the merge path or, for elements,
/// `size` elements.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t units_of(unit_of_work how, std::int64_t rows,
                                                                std::int64_t elements,
                                                                std::int64_t size) {
  const std::int64_t things = how == unit_of_work::elements ? elements : rows + elements;
  // Rows without elements need a unit, too.
  const std::int64_t units = things / size + (things % size != 0 ? 1 : 0);
  return units > 0 ? units : rows > 0 ? 1 : 0;
}

/// The first row and the first element of unit `number`, for whole_rows, path and elements. A unit
/// after the last one begins after everything.
template <class Offset>
[[nodiscard]] UNTAX_HOST_DEVICE path_point begin_of_unit(unit_of_work how, const Offset* offsets,
                                                         std::int64_t rows, std::int64_t size,
                                                         std::int64_t number) {
  const auto elements = static_cast<std::int64_t>(offsets[rows]);
  if (number >= units_of(how, rows, elements, size)) return {rows, elements};
  if (how == unit_of_work::elements)
    return {first_row_from(offsets, rows, number * size), number * size};
  path_point at = merge_path(offsets, rows, number * size);
  if (how == unit_of_work::whole_rows) at.entries = static_cast<std::int64_t>(offsets[at.rows]);
  return at;
}

}  // namespace untax::sparse
