#ifndef UNTAX_C_OPERATOR_H
#define UNTAX_C_OPERATOR_H

#include <untax/c/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Row-major matrices that operators read, and that they write. `stride` is the number of elements
 * from row to row; 0 if there are no gaps between rows. */
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

/* Arrays of contiguous elements. */
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

/* untax_NAME_plan makes an operator for one problem, and untax_NAME_run runs it, any number of
 * times. `options` may be NULL. Planning and destroying are collective, and so is each run: all
 * ranks make the same calls in the same order. Runs take place in the order of the calls, also on
 * several streams and in graphs (docs/design.md, "The order of runs"). An operator is used by one
 * thread at a time: invalid_argument for a second one. The world has to outlive it;
 * untax_world_destroy refuses otherwise.
 *
 * In a world of the host `stream` has to be NULL, else unsupported, and a run returns when the
 * result is complete and the operands may be changed again. In a world of GPUs operands are in
 * memory of the rank's GPU, which is the current device. With `stream`, a cudaStream_t, a run is
 * asynchronous: it only launches on the stream, and can be captured in a graph; untax_world_check
 * returns the error of a failed wait after it has ended. With NULL the run starts after the work in
 * the default stream, and returns as on the host. The default stream itself is cudaStreamLegacy;
 * ranks that share a GPU cannot run on it: unsupported.
 *
 * Plans fail with invalid_argument, disagreement, out_of_memory and unsupported. Runs fail with
 * invalid_argument and not_symmetric, before anything is sent, and with disagreement, timeout,
 * peer_lost and aborted. */

/* The names of the operators and collectives of the library, by number from 0; NULL for other
 * numbers. All are planned and run by these names; most have untax_NAME_plan and untax_NAME_run. */
UNTAX_API const char* untax_operator_name(int32_t number);

typedef enum untax_field_kind {
  untax_field_integer = 0,
  untax_field_flag,   /* 0 or 1 */
  untax_field_choice, /* one of some words */
  untax_field_real,
  untax_field_integers /* an array */
} untax_field_kind;

/* A field of the problem or of the options of an operator: a member of untax_NAME_problem, or of
 * the structure of its options. The texts live as long as the library. */
typedef struct untax_field {
  size_t size;
  const char* name;
  const char* help;
  const char* words; /* of a choice and of some flags: "fp32, fp16, bf16"; else "" */
  int32_t kind;      /* untax_field_kind */
  int32_t option;    /* 1: of the options; 0: of the problem */
} untax_field;

/* Describes field `number`, counted from 0, of an operator: problem first, then options. `f` may be
 * of an older caller. Fails with invalid_argument for an operator or a number that there is not. */
UNTAX_API int32_t untax_operator_field(const char* operator_name, int32_t number, untax_field* f);

/* A value for a field. `kind` says which member has it: a choice or a flag with words takes a word
 * or an integer, a real a real or an integer. */
typedef struct untax_setting {
  const char* name;
  int32_t kind; /* untax_field_kind of the value; untax_field_choice is a word */
  int32_t integers_size;
  const char* word;
  int64_t integer;
  double real;
  const int64_t* integers;
} untax_setting;

/* As untax_NAME_plan, with fields by their names; those that are not given are 0. So a program can
 * plan operators that it does not know. */
UNTAX_API int32_t untax_operator_plan(untax_world* world, const char* operator_name,
                                      const untax_setting* settings, int32_t count,
                                      untax_operator** op);

/* An operand of a run. `stride` is the number of elements from row to row; 0 if there are no gaps.
 */
typedef struct untax_operand {
  const char* name; /* as untax_NAME_run has it */
  void* data;       /* is not written if the run only reads it */
  int64_t rows;
  int64_t cols;
  int64_t stride;
  int32_t type; /* untax_type */
} untax_operand;

/* The shape of an operand of a run as a rank passes it; those of the capacity, if runs differ. */
typedef struct untax_operand_shape {
  size_t size;
  const char* name;
  int64_t rows; /* arrays have one row */
  int64_t cols;
  int32_t type;     /* untax_type */
  int32_t written;  /* 1: the run writes it; 0: it reads it */
  int32_t optional; /* 1: it may be missing */
} untax_operand_shape;

/* Describes operand `number`, counted from 0, of a problem between `ranks` ranks, without a plan.
 * Fails with invalid_argument for an operator, a setting or a number that there is not. */
UNTAX_API int32_t untax_operator_shape(const char* operator_name, const untax_setting* settings,
                                       int32_t count, int32_t ranks, int32_t rank, int32_t number,
                                       untax_operand_shape* shape);

/* As untax_NAME_run, with operands by their names; those that may be NULL there may be missing. A
 * number, such as a scale, is an operand of one element in host memory. */
UNTAX_API int32_t untax_operator_run(untax_operator* op, const untax_operand* operands,
                                     int32_t count, void* stream);

/* The operator's own memory for the one matrix that it writes, in the symmetric heap.
 * invalid_argument if it has none. */
UNTAX_API int32_t untax_operator_result(const untax_operator* op, untax_matrix* result);

/* Collective. In a world of the host it waits for no peer. In a world of GPUs it waits for the
 * rank's GPU and for all ranks. `op` may be NULL. */
UNTAX_API int32_t untax_operator_destroy(untax_operator* op);
/* Ends the use of an operator by this rank, in place of untax_operator_destroy, of which all ranks
 * have to choose the same. It is not collective and never waits, and any thread may call it. `op`
 * is no longer valid, and is destroyed in the first call that waits for all ranks and by which all
 * of them have dropped theirs, or with the world. `op` may be NULL. */
UNTAX_API int32_t untax_operator_drop(untax_operator* op);
/* 1 if this cudaStream_t is being captured in a graph, else 0. */
UNTAX_API int32_t untax_stream_is_captured(void* stream);
/* The name of the operator, such as "all_gather_gemm". */
UNTAX_API const char* untax_operator_kind(const untax_operator* op);
/* A text that says what was chosen, and why. */
UNTAX_API const char* untax_operator_explain(const untax_operator* op);
/* The untax_pattern that was chosen; untax_automatic of an operator that sends nothing. */
UNTAX_API int32_t untax_operator_pattern(const untax_operator* op);
/* The rows, columns and type of an argument that this rank passes to a run, by the name that it has
 * below; those of the capacity, if runs differ. Arrays have one row. Any of the three may be
 * NULL. */
UNTAX_API int32_t untax_operator_operand(const untax_operator* op, const char* name, int64_t* rows,
                                         int64_t* cols, int32_t* type);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_OPERATOR_H */
