#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <untax/core/host_device.hpp>
#include <untax/sparse/split.hpp>

namespace untax::sparse {

/// Ways to compute y = alpha A x + beta y. All but those of cuSPARSE exist on threads of the host
/// and on GPUs. A block is one of a kernel; on the host a thread stands for it.
enum class spmv_kernel {
  csr_thread,      ///< a thread adds a row
  csr_warp2,       ///< 2 lanes of a warp add a row
  csr_warp4,       ///< 4
  csr_warp8,       ///< 8
  csr_warp16,      ///< 16
  csr_warp32,      ///< a whole warp
  csr_mixed4,      ///< 4 lanes add a row, a block a long one
  csr_mixed16,     ///< 16
  csr_block,       ///< a block adds a row
  csr_adaptive,    ///< a block has whole rows with about as many elements
  csr_merge_path,  ///< a block has as many rows and elements, added up, as another one
  csr_balanced,    ///< a block has as many elements as another one
  coo,             ///< the same, with the row of each element stored
  ell,             ///< all rows padded to the longest, stored by columns
  sellp,           ///< rows padded to the longest of their slice
  cusparse_csr1,   ///< cuSPARSE's first algorithm for CSR
  cusparse_csr2,   ///< its second one, whose bits are the same in each run
  cusparse_coo,    ///< its algorithm for COO
  cusparse_sell,   ///< its algorithm for sliced ELL, with the slices of sellp
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

/// What a unit of work has: it says which elements are in which unit, and whose rows they are.
enum class unit_of_work {
  row,         ///< one row
  whole_rows,  ///< the rows that end within so many steps of the merge path
  path,        ///< so many steps of the merge path; a row is of the unit in which it ends
  elements,    ///< so many elements; a row is of the unit in which it begins
  slice,       ///< so many rows, padded to the longest
  library,     ///< what a library does
};

/// How the terms of a row are added. In each the order is one of the matrix alone, unless
/// `spmv_way` says otherwise.
enum class row_sum {
  serial,    ///< one after the other
  lanes,     ///< lane l has elements l, l + lanes, ...; lanes are added in a tree of halves, those
             ///< of a warp first; how many there are says `lanes_of_row`
  segments,  ///< parts of a unit by a segmented scan, those of several units in their order
  library,
};

/// The contract of a way. Any implementation of it
/// - has each element in exactly one unit, and writes each row once, an empty one, too;
/// - adds as `sum` says: what units other than a row's own have of it comes behind, in the order of
///   units, or, where `ordered` is false, as it happens;
/// - does not read y where beta is 0, nor x where padding is.
/// tests/sparse/contract.hpp asks for all of that.
struct spmv_way {
  std::string_view name;
  unit_of_work unit = unit_of_work::row;
  row_sum sum = row_sum::serial;
  int lanes = 1;           ///< that share a row
  bool on_host = true;     ///< false: needs a GPU
  bool same_threads_only;  ///< on the host the bits depend on how many threads there are
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

[[nodiscard]] constexpr const spmv_way& way_of(spmv_kernel kernel) noexcept {
  return detail::spmv_ways[static_cast<std::size_t>(kernel)];
}
/// "csr_thread" and so on.
[[nodiscard]] constexpr std::string_view name_of(spmv_kernel kernel) noexcept {
  return way_of(kernel).name;
}
/// Lanes that add a row of so many elements. In a mixed way all threads of a block add a row that
/// has more than 64 elements for each of its lanes, when the other rows of the block are done. So a
/// long row costs little although nothing has been gathered about rows.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int lanes_of_row(int lanes, bool mixed,
                                                           std::int64_t elements) noexcept {
  return mixed && elements > std::int64_t{64} * lanes ? detail::long_row_lanes : lanes;
}
/// Whether y has the same bits for any number of threads of the host. Those that cut rows where
/// threads end have the same bits for the same number of threads only.
[[nodiscard]] constexpr bool is_reproducible(spmv_kernel kernel) noexcept {
  return way_of(kernel).on_host && !way_of(kernel).same_threads_only;
}
/// Whether y has the same bits in each run on a GPU.
[[nodiscard]] constexpr bool is_reproducible_on_gpu(spmv_kernel kernel) noexcept {
  return way_of(kernel).ordered;
}

/// How many units of `size` a matrix has whose rows end within steps, or that has so many elements.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t units_of(unit_of_work how, std::int64_t rows,
                                                                std::int64_t elements,
                                                                std::int64_t size) {
  const std::int64_t things = how == unit_of_work::elements ? elements : rows + elements;
  // Rows without elements need a unit, too.
  const std::int64_t units = things / size + (things % size != 0 ? 1 : 0);
  return units > 0 ? units : rows > 0 ? 1 : 0;
}

/// The first row of a unit and its first element: for whole_rows, path and elements. Unit number
/// `units_of` begins behind all.
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
