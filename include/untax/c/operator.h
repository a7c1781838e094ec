#ifndef UNTAX_C_OPERATOR_H
#define UNTAX_C_OPERATOR_H

#include <untax/c/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What operators read, and what they write: row-major, `stride` elements from row to row, 0 if rows
 * lie side by side. */
typedef struct untax_const_matrix {
  const void* data;
  int64_t rows;
  int64_t cols;
  int64_t stride;
  int32_t type; /* untax_type */
} untax_const_matrix;

typedef struct untax_matrix {
  void* data;
  int64_t rows;
  int64_t cols;
  int64_t stride;
  int32_t type;
} untax_matrix;

/* Elements that lie side by side. */
typedef struct untax_const_array {
  const void* data;
  int64_t count;
  int32_t type;
} untax_const_array;

typedef struct untax_array {
  void* data;
  int64_t count;
  int32_t type;
} untax_array;

/* Planning and destroying are collective, and so is each run: all ranks do the same in the same
 * order. A plan is for one problem and is run many times. The world has to outlive it;
 * untax_world_destroy sees to that.
 *
 * In a world of the host `stream` is NULL, and a run returns when the result is complete and the
 * operands are the caller's again. In a world of GPUs operands lie in memory of the rank's GPU,
 * which is current. With `stream`, a cudaStream_t, a run only launches on it, can be captured in a
 * graph, and what goes wrong is told by untax_world_check; without one it begins behind what the
 * default stream has, and returns as on the host. The default stream itself is cudaStreamLegacy;
 * ranks that share a GPU cannot run on it: unsupported.
 *
 * Plans fail with invalid_argument, disagreement, out_of_memory and unsupported; runs with
 * invalid_argument and not_symmetric, before anything moves, and with timeout, peer_lost and
 * aborted. */

/* Collective. Waits for no peer in a world of the host. NULL is fine. */
UNTAX_API int32_t untax_operator_destroy(untax_operator* op);
/* "all_gather_gemm": which one it is. */
UNTAX_API const char* untax_operator_kind(const untax_operator* op);
/* What was chosen, and why. */
UNTAX_API const char* untax_operator_explain(const untax_operator* op);
/* The untax_pattern that was chosen; untax_automatic of one that sends nothing. */
UNTAX_API int32_t untax_operator_pattern(const untax_operator* op);
/* Rows, columns and type of what this rank passes for an argument of the run, by the name that it
 * has below; of the capacity, where runs differ. Arrays have one row. Any of the three may be NULL.
 */
UNTAX_API int32_t untax_operator_operand(const untax_operator* op, const char* name, int64_t* rows,
                                         int64_t* cols, int32_t* type);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_OPERATOR_H */
