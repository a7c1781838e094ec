#ifndef UNTAX_C_COLLECTIVES_H
#define UNTAX_C_COLLECTIVES_H

#include <untax/c/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How collectives are carried out. */
typedef struct untax_collective_options {
  size_t size;
  int32_t pattern; /* bulk_synchronous, fused_sequential, fused_specialized or automatic */
  int32_t phases;  /* of all_reduce and broadcast: 1 straight to everybody, 2 by way of one rank */
  int32_t eager;   /* 1: start threads for each run; of the host only */
  int32_t wire;    /* between GPUs: 0 automatic, 1 stores, 2 bulk, 3 packets */
  int32_t workers; /* of a rank; GPU: blocks */
  int32_t depth;   /* rooms in turn for chunks on their way between two workers */
  int64_t chunk_bytes; /* that move as a whole, at most */
  int32_t
      direct; /* 1: what peers touch lies in symmetric memory, at the same offset at all ranks */
  int32_t inputs; /* of reductions that are direct: 0 automatic, 1 read where they lie, 2 sent */
  /* 1: count is a capacity: a run has any from 0 to it, the same at all ranks; its arrays say how
   * many. */
  int32_t varying_count;
} untax_collective_options;

/* Every rank ends with the shards of all: `count` elements, of which a rank has ceil(count / W). */
typedef struct untax_all_gather_problem {
  size_t size;
  int64_t count;
  int32_t type;
} untax_all_gather_problem;

UNTAX_API int32_t untax_all_gather_plan(untax_world* world, const untax_all_gather_problem* problem,
                                        const untax_collective_options* options,
                                        untax_operator** op);
/* `in`: this rank's shard. `out`: all elements; in place if `in` is this rank's part of it. */
UNTAX_API int32_t untax_all_gather_run(untax_operator* op, const untax_const_array* in,
                                       const untax_array* out, void* stream);

/* Rank r ends with shard r of the combination of all inputs of `count` elements. */
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
/* `in`: all elements. `out`: this rank's shard; in place if it is this rank's part of `in`. */
UNTAX_API int32_t untax_reduce_scatter_run(untax_operator* op, const untax_const_array* in,
                                           const untax_array* out, void* stream);

/* Every rank ends with the combination of all inputs: the same bits everywhere. */
typedef struct untax_all_reduce_problem {
  size_t size;
  int64_t count;
  int32_t type;
  int32_t reduction; /* untax_reduction */
} untax_all_reduce_problem;

UNTAX_API int32_t untax_all_reduce_plan(untax_world* world, const untax_all_reduce_problem* problem,
                                        const untax_collective_options* options,
                                        untax_operator** op);
/* In place if `in` and `out` are the same, but not in one phase in fused_specialized, or directly.
 */
UNTAX_API int32_t untax_all_reduce_run(untax_operator* op, const untax_const_array* in,
                                       const untax_array* out, void* stream);

/* Every rank has a part for every rank, in rank order, and ends with those that the ranks have for
 * it. */
typedef struct untax_all_to_all_problem {
  size_t size;
  int64_t count; /* elements of each part, unless `counts` says otherwise */
  int32_t type;
  int32_t counts_size;   /* 0, or W * W */
  const int64_t* counts; /* part (from, to) has counts[from * W + to]; the same at all ranks */
} untax_all_to_all_problem;

UNTAX_API int32_t untax_all_to_all_plan(untax_world* world, const untax_all_to_all_problem* problem,
                                        const untax_collective_options* options,
                                        untax_operator** op);
/* `in`: the parts for rank 0, 1, ... `out`: the parts of rank 0, 1, ... */
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
/* `in`: at the root; NULL or anything elsewhere. `out`: all elements; in place if they are the
 * same. */
UNTAX_API int32_t untax_broadcast_run(untax_operator* op, const untax_const_array* in,
                                      const untax_array* out, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_COLLECTIVES_H */
