#ifndef UNTAX_C_COLLECTIVES_H
#define UNTAX_C_COLLECTIVES_H

#include <untax/c/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of collectives. A value of 0 is the default. Options that change the plan have to be the
 * same at all ranks. */
typedef struct untax_collective_options {
  size_t size;
  int32_t pattern; /* bulk_synchronous, fused_sequential, fused_specialized or automatic */
  int32_t phases;  /* of all_reduce and broadcast: 1 straight to all ranks, 2 by way of one rank */
  int32_t eager;   /* 1: start threads for each run; of the host only */
  int32_t wire;    /* between GPUs: 0 automatic, 1 stores, 2 bulk, 3 packets */
  int32_t workers; /* workers of a rank; on GPUs blocks */
  int32_t depth;   /* rooms used in turn for the chunks between two workers */
  int64_t chunk_bytes; /* the most bytes that are sent as a whole */
  int32_t
      direct; /* 1: what peers touch lies in symmetric memory, at the same offset at all ranks */
  int32_t inputs; /* of reductions with direct: 0 automatic, 1 read where they are, 2 sent */
  /* 1: count is a capacity: a run has any count from 0 to it, the same at all ranks; its arrays say
   * how many. */
  int32_t varying_count;
} untax_collective_options;

/* Every rank ends with the shards of all ranks: `count` elements, of which rank r has shard r of
 * ceil(count / W). The last shards are shorter or empty. */
typedef struct untax_all_gather_problem {
  size_t size;
  int64_t count;
  int32_t type;
} untax_all_gather_problem;

UNTAX_API int32_t untax_all_gather_plan(untax_world* world, const untax_all_gather_problem* problem,
                                        const untax_collective_options* options,
                                        untax_operator** op);
/* `in`: this rank's shard. `out`: all elements, written. In place if `in` is this rank's part of
 * `out`. */
UNTAX_API int32_t untax_all_gather_run(untax_operator* op, const untax_const_array* in,
                                       const untax_array* out, void* stream);

/* Rank r ends with shard r of the combination of all inputs of `count` elements. They are combined
 * in fp32 in rank order. */
typedef struct untax_reduce_scatter_problem {
  size_t size;
  int64_t count;
  int32_t type;
  int32_t reduction; /* untax_reduction */
} untax_reduce_scatter_problem;

UNTAX_API int32_t untax_reduce_scatter_plan(untax_world* world,
                                            const untax_reduce_scatter_problem* problem,
                                            const untax_collective_options* options,
                                            untax_operator** op);
/* `in`: all elements. `out`: this rank's shard, written. In place if `out` is this rank's part of
 * `in`. */
UNTAX_API int32_t untax_reduce_scatter_run(untax_operator* op, const untax_const_array* in,
                                           const untax_array* out, void* stream);

/* Every rank ends with the combination of all inputs, with the same bits everywhere. */
typedef struct untax_all_reduce_problem {
  size_t size;
  int64_t count;
  int32_t type;
  int32_t reduction; /* untax_reduction */
} untax_all_reduce_problem;

UNTAX_API int32_t untax_all_reduce_plan(untax_world* world, const untax_all_reduce_problem* problem,
                                        const untax_collective_options* options,
                                        untax_operator** op);
/* `in` and `out`: all elements. In place if they are the same array; but with one phase not in
 * fused_specialized or with `direct`. */
UNTAX_API int32_t untax_all_reduce_run(untax_operator* op, const untax_const_array* in,
                                       const untax_array* out, void* stream);

/* Every rank has a part for every rank, in rank order, and ends with the parts that the ranks have
 * for it. */
typedef struct untax_all_to_all_problem {
  size_t size;
  int64_t count; /* elements of each part, if `counts` is NULL */
  int32_t type;
  int32_t counts_size;   /* 0, or W * W */
  const int64_t* counts; /* part (from, to) has counts[from * W + to]; the same at all ranks */
} untax_all_to_all_problem;

UNTAX_API int32_t untax_all_to_all_plan(untax_world* world, const untax_all_to_all_problem* problem,
                                        const untax_collective_options* options,
                                        untax_operator** op);
/* `in`: the parts for rank 0, 1, ... `out`: the parts of rank 0, 1, ..., written. They share no
 * memory. */
UNTAX_API int32_t untax_all_to_all_run(untax_operator* op, const untax_const_array* in,
                                       const untax_array* out, void* stream);

/* Every rank ends with the `count` elements of rank `root`. */
typedef struct untax_broadcast_problem {
  size_t size;
  int64_t count;
  int32_t type;
  int32_t root;
} untax_broadcast_problem;

UNTAX_API int32_t untax_broadcast_plan(untax_world* world, const untax_broadcast_problem* problem,
                                       const untax_collective_options* options,
                                       untax_operator** op);
/* `in`: all elements, at the root; other ranks ignore it, and it may be NULL. `out`: all elements,
 * written. In place if they are the same array. */
UNTAX_API int32_t untax_broadcast_run(untax_operator* op, const untax_const_array* in,
                                      const untax_array* out, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_COLLECTIVES_H */
