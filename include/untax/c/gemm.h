#ifndef UNTAX_C_GEMM_H
#define UNTAX_C_GEMM_H

#include <untax/c/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of GEMM operators and of sums whose rows are normalised. A value of 0 is the default.
 * Options that change the plan have to be the same at all ranks. */
typedef struct untax_operator_options {
  size_t size;
  int32_t pattern;          /* untax_pattern */
  int32_t pull;             /* 1: readers move data, not owners; if the operator gathers */
  int32_t eager;            /* 1: start threads for each run; of the host only */
  int32_t workers;          /* computing workers of a rank; on GPUs the most blocks that multiply */
  int32_t senders;          /* senders of a rank, if the pattern has them */
  int32_t constant_weights; /* 1: no work ahead in the stream writes the weights; of GPUs only */
  int64_t tile_m;           /* rows of a tile; this and the next two of the host only */
  int64_t tile_n;           /* columns of a tile */
  int64_t panel_k;          /* columns of a chunk if A is gathered by k */
  /* of sums that every rank gets: 1 or 2; 2: owners add rows and send sums */
  int32_t phases;
  /* 1: m, or tokens, is a capacity: a run has any number of rows from 0 to it, the same at all
   * ranks; its matrices say how many. On GPUs own kernels of all_gather_gemm and gemm_all_scatter
   * do not have it with pull: unsupported. */
  int32_t varying_rows;
  /* 1: rows of results have the same bits for every m, place in the batch and pattern. bulk_library
   * on GPUs does not have it: unsupported. */
  int32_t invariant;
} untax_operator_options;

/* C_r [m, n] = gather(A) [m, k] x B_r [n, k]^T. A is sharded over W ranks: shards have ceil(m / W)
 * rows or, with gather_k, ceil(k / W) columns rounded up to a multiple of 8; the last ones are
 * shorter or empty. */
typedef struct untax_all_gather_gemm_problem {
  size_t size;
  int64_t m;
  int64_t n; /* columns of the result of one rank */
  int64_t k;
  int32_t type;
  int32_t gather_k; /* 1: A is sharded by columns */
} untax_all_gather_gemm_problem;

UNTAX_API int32_t untax_all_gather_gemm_plan(untax_world* world,
                                             const untax_all_gather_gemm_problem* problem,
                                             const untax_operator_options* options,
                                             untax_operator** op);
/* `a`: this rank's shard. `weights`: [n, k]. `c`: [m, n]. */
UNTAX_API int32_t untax_all_gather_gemm_run(untax_operator* op, const untax_const_matrix* a,
                                            const untax_const_matrix* weights,
                                            const untax_matrix* c, void* stream);

/* C [m, n] = A [m, k] x B [n, k]^T, complete at every rank. A is the same at all ranks. B is
 * sharded in shards of ceil(n / W) rows rounded up to a multiple of 8. */
typedef struct untax_gemm_all_scatter_problem {
  size_t size;
  int64_t m;
  int64_t n; /* columns of the whole result */
  int64_t k;
  int32_t type;
} untax_gemm_all_scatter_problem;

UNTAX_API int32_t untax_gemm_all_scatter_plan(untax_world* world,
                                              const untax_gemm_all_scatter_problem* problem,
                                              const untax_operator_options* options,
                                              untax_operator** op);
/* `a`: [m, k]. `weights`: this rank's shard. `c`: [m, n] in symmetric memory, at the same offset at
 * all ranks; NULL for the operator's own. Peers write into it from the call of the run to its
 * return, or until the stream has passed the run. */
UNTAX_API int32_t untax_gemm_all_scatter_run(untax_operator* op, const untax_const_matrix* a,
                                             const untax_const_matrix* weights,
                                             const untax_matrix* c, void* stream);
/* The operator's own C. */
UNTAX_API int32_t untax_gemm_all_scatter_result(const untax_operator* op, untax_matrix* c);

/* The element type in which partial results of a sum over ranks are sent. A value of 0 is `type` of
 * the problem, and so is the number of that type. fp32 sends twice the bytes of a 16-bit type and
 * rounds nothing on the way; since untax_f32 is 0, it has a number of its own here. */
typedef enum untax_partials { untax_partials_of_type = 0, untax_partials_f32 = -1 } untax_partials;

/* C [m, n] = sum over ranks of A_r [m, k_r] x B_r [n, k_r]^T. k is sharded: shards have ceil(k / W)
 * elements rounded up to a multiple of 8. A rank ends with its ceil(m / W) rows. Partial results
 * are rounded to elements of `partials`, sent, and added in fp32 in rank order. */
typedef struct untax_gemm_reduce_scatter_problem {
  size_t size;
  int64_t m;
  int64_t n;
  int64_t k; /* of all ranks together */
  int32_t type;
  int32_t partials; /* untax_partials */
} untax_gemm_reduce_scatter_problem;

UNTAX_API int32_t untax_gemm_reduce_scatter_plan(untax_world* world,
                                                 const untax_gemm_reduce_scatter_problem* problem,
                                                 const untax_operator_options* options,
                                                 untax_operator** op);
/* `a`: [m, k_r]. `weights`: [n, k_r]. `c`: this rank's rows. In a world of GPUs there is no fp32,
 * and n and k are multiples of 8. */
UNTAX_API int32_t untax_gemm_reduce_scatter_run(untax_operator* op, const untax_const_matrix* a,
                                                const untax_const_matrix* weights,
                                                const untax_matrix* c, void* stream);

/* The same sum, complete at every rank, with the same bits. */
typedef struct untax_gemm_all_reduce_problem {
  size_t size;
  int64_t m;
  int64_t n;
  int64_t k; /* of all ranks together */
  int32_t type;
  int32_t partials; /* untax_partials */
} untax_gemm_all_reduce_problem;

UNTAX_API int32_t untax_gemm_all_reduce_plan(untax_world* world,
                                             const untax_gemm_all_reduce_problem* problem,
                                             const untax_operator_options* options,
                                             untax_operator** op);
/* `a`: [m, k_r]. `weights`: [n, k_r]. `c`: [m, n], anywhere in memory; NULL for the operator's own,
 * which saves a copy with two phases, and which peers then write during a run in any case. In a
 * world of GPUs as above. */
UNTAX_API int32_t untax_gemm_all_reduce_run(untax_operator* op, const untax_const_matrix* a,
                                            const untax_const_matrix* weights,
                                            const untax_matrix* c, void* stream);
/* The operator's own C. */
UNTAX_API int32_t untax_gemm_all_reduce_result(const untax_operator* op, untax_matrix* c);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_GEMM_H */
