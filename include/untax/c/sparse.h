#ifndef UNTAX_C_SPARSE_H
#define UNTAX_C_SPARSE_H

#include <untax/c/library.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A sparse matrix in compressed rows (CSR), in memory of the host: row r has the elements
 * offsets[r] to offsets[r + 1] - 1 of `columns` and `values`. */
typedef struct untax_csr {
  size_t size;
  int64_t rows;
  int64_t cols;
  int64_t elements;       /* how many columns and values there are */
  const void* offsets;    /* rows + 1 of them, of offset_bits; the first is 0 */
  const int32_t* columns; /* counted from 0 */
  const void* values;     /* of value_bits */
  int32_t offset_bits;    /* 32 or 64: int32_t or int64_t */
  int32_t value_bits;     /* 32 or 64: float or double */
} untax_csr;

/* A matrix that is prepared to be multiplied by vectors, on threads of this process. It belongs to
 * no world. Calls must not run at the same time. */
typedef struct untax_spmv untax_spmv;

/* The names of the ways to multiply, by number from 0; NULL for other numbers. Those of cuSPARSE
 * are for GPUs, and are unsupported here. */
UNTAX_API const char* untax_spmv_way(int32_t number);
/* Checks the matrix, and converts it for `way`, a name as above; NULL is "csr_merge_path", which is
 * not slowed down by single long rows. `threads`: 1 to 1024, 0 for as many as the machine has. The
 * arrays have to outlive the product, since ways with CSR read them where they are.
 * invalid_argument; unsupported for ways that need a GPU, and if ELL would store more than ten
 * times as many elements; out_of_memory. */
UNTAX_API int32_t untax_spmv_make(const untax_csr* matrix, const char* way, int32_t threads,
                                  untax_spmv** product);
/* y = alpha A x + beta y, with elements of the type of the matrix. If beta is 0, y is not read. `x`
 * has `x_count` elements, as many as A has columns, `y` as many as rows; they do not overlap. It
 * returns when y is complete. invalid_argument. */
UNTAX_API int32_t untax_spmv_run(untax_spmv* product, double alpha, const void* x, int64_t x_count,
                                 double beta, void* y, int64_t y_count);
/* The seconds that the conversion took, without the start of threads; 0 for NULL. */
UNTAX_API double untax_spmv_setup_seconds(const untax_spmv* product);
/* Ends its threads and destroys it. It may be NULL. */
UNTAX_API int32_t untax_spmv_destroy(untax_spmv* product);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_SPARSE_H */
