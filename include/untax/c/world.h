#ifndef UNTAX_C_WORLD_H
#define UNTAX_C_WORLD_H

#include <untax/c/library.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct untax_world_options {
  size_t size;
  size_t heap_bytes; /* symmetric heap of each rank, on GPUs its first size; 0: UNTAX_HEAP_BYTES, or
                        1 GiB */
  int64_t wait_limit_ms; /* after which a wait is an error; 0: UNTAX_WAIT_LIMIT_MS, or 20 s; -1: for
                            ever */
  int64_t join_limit_ms; /* in which all processes have to come; 0: UNTAX_JOIN_LIMIT_MS, or 60 s;
                            -1: for ever */
  int32_t memory;        /* untax_memory: memory of the heaps of processes */
  int32_t ranks_per_gpu; /* of untax_world_gpus; 0: UNTAX_RANKS_PER_GPU, or 1 */
  int32_t heap_guards;   /* 1: guard bands between allocations, -1: none; 0: UNTAX_HEAP_GUARDS */
  /* of processes: 1 for the first GPU that this process sees, and so on; 0: by rank */
  int32_t gpu;
} untax_world_options;

typedef enum untax_memory {
  untax_memory_default = 0, /* UNTAX_MEMORY, or host */
  untax_memory_host,
  untax_memory_cuda,
  untax_memory_automatic /* cuda if every process here has a GPU of its own, else host */
} untax_memory;

/* An all-gather of bytes among the processes that are to become ranks. `mine` is the contribution
 * of this process, `bytes` bytes, the same number at all ranks. The function fills `all`, which has
 * room for the bytes of all ranks, in rank order. It returns 0, or any other value if it failed;
 * then the world is not made. */
typedef int (*untax_exchange)(void* context, const void* mine, size_t bytes, void* all);

/* Writes the views of `ranks` ranks that are threads of this process to `worlds`; each is for a
 * thread of its own. `options` may be NULL, here and below. invalid_argument, out_of_memory. */
UNTAX_API int32_t untax_world_threads(int32_t ranks, const untax_world_options* options,
                                      untax_world** worlds);
/* The same on GPUs of this process: rank r is on GPU r. The thread of a rank calls
 * untax_world_use_device first. unsupported if there are fewer GPUs, or if they cannot reach each
 * other. */
UNTAX_API int32_t untax_world_gpus(int32_t ranks, const untax_world_options* options,
                                   untax_world** worlds);
/* Collective. Makes the rank of this process in the world that its launcher describes: `untax run
 * --processes`, torchrun, mpirun or srun; without a launcher it is a world of one rank. It returns
 * when all ranks have joined. disagreement, timeout, peer_lost, unsupported. */
UNTAX_API int32_t untax_world_from_environment(const untax_world_options* options,
                                               untax_world** world);
/* Collective. Makes rank `rank` of `ranks` processes of this host that can already exchange bytes;
 * they may be some of a larger job. `exchange` is called once, by the calling thread, with
 * `context`. Fails as above, and with aborted if `exchange` failed. */
UNTAX_API int32_t untax_world_from_exchange(int32_t rank, int32_t ranks, untax_exchange exchange,
                                            void* context, const untax_world_options* options,
                                            untax_world** world);
/* Destroys the world: this rank has finished, and for peers that wait for it, it is lost. On GPUs
 * it waits for the rank's GPU first. invalid_argument if operators that were made on it still
 * exist; then it does nothing. `world` may be NULL. */
UNTAX_API int32_t untax_world_destroy(untax_world* world);
/* Says that this rank has failed: all waits of all ranks end, with `text` as the reason, and this
 * rank as the suspect. Only the first call in a world has an effect. Any thread may call it. The
 * world still has to be destroyed. */
UNTAX_API int32_t untax_world_fail(untax_world* world, const char* text);

/* The number of this rank; -1 for NULL. */
UNTAX_API int32_t untax_world_rank(const untax_world* world);
/* The number of ranks; -1 for NULL. */
UNTAX_API int32_t untax_world_size(const untax_world* world);
/* "threads", "processes", "GPUs" (of this process) or "alone". */
UNTAX_API const char* untax_world_kind(const untax_world* world);
/* The device number of the rank's GPU in this process; -1 if heaps are in host memory. */
UNTAX_API int32_t untax_world_device(const untax_world* world);
/* How many ranks share a GPU: 1, unless the options asked for more. */
UNTAX_API int32_t untax_world_ranks_per_gpu(const untax_world* world);
/* The bytes of this rank's symmetric heap that are allocated, by operators and by the caller; -1
 * for NULL. Called by the thread that uses the world. */
UNTAX_API int64_t untax_world_heap_used(untax_world* world);
/* Makes the rank's GPU the current device of the calling thread. It does nothing if heaps are in
 * host memory. */
UNTAX_API int32_t untax_world_use_device(const untax_world* world);

/* Collective. Returns when all ranks have entered. What they did before is visible afterwards. */
UNTAX_API int32_t untax_world_barrier(untax_world* world);
/* Collective. Waits for all ranks, and fails with disagreement at every rank unless all give the
 * same `description` of `what`. */
UNTAX_API int32_t untax_world_agree(untax_world* world, const char* what, const char* description);
/* Fails with the reason if the world was stopped, also by a kernel that gave up waiting. Called
 * after kernels of this rank have ended, it says whether they ended well. */
UNTAX_API int32_t untax_world_check(const untax_world* world);
/* Runs of collective operators that are called from now on begin after the work that `stream` has
 * now, whatever their streams, also in a graph if the stream is being captured. It is for work
 * between runs that uses what peers write, such as a copy of an operator's own result. It does
 * nothing in a world of the host. */
UNTAX_API int32_t untax_world_let_runs_follow(untax_world* world, void* stream);

/* Collective. Allocates `bytes` bytes of symmetric memory at every rank, aligned to 512 bytes and
 * not cleared; `*local` is this rank's. It does not wait, unless the only free memory is that of
 * operators that ended. `label` names the owner in messages, and may be NULL. out_of_memory. */
UNTAX_API int32_t untax_world_allocate(untax_world* world, size_t bytes, const char* label,
                                       void** local);
/* Collective. Frees an allocation, which no rank may access any more. It does not wait. Allocations
 * that are left are freed with the world. invalid_argument. */
UNTAX_API int32_t untax_world_free(untax_world* world, void* local);
/* Gives an allocation of untax_world_allocate back, in place of untax_world_free, of which all
 * ranks have to choose the same. It is not collective, and any thread may call it: the memory is
 * free after the first call that waits for all ranks and by which all of them have dropped it.
 * invalid_argument. */
UNTAX_API int32_t untax_world_drop(untax_world* world, void* local);
/* Keeps the heaps of all ranks mapped where they are until untax_mapping_release, also when the
 * world was destroyed. What lies in them does not stay. */
UNTAX_API int32_t untax_world_map(const untax_world* world, untax_mapping** mapping);
/* Any thread may call it. `mapping` may be NULL. */
UNTAX_API void untax_mapping_release(untax_mapping* mapping);
/* By which kernels that are written in another language reach peers and bound their waits: the
 * addresses and the numbers of include/untax/flow/device_control.hpp, whose rules they keep. Only
 * kernels access the addresses. */
typedef struct untax_kernel_state {
  size_t size;
  int32_t rank;
  int32_t ranks;
  int64_t span;       /* bytes from the symmetric memory of a rank to that of the next one */
  void* records;      /* of the kernels' waits, 64 bytes each */
  void* progress;     /* 8 bytes for each record */
  int32_t first_slot; /* the number of the first record, among all of the rank */
  int32_t slots;      /* how many records there are */
  void* host_stop;
  void* stop;
  int64_t stop_span;
  void* outcome;
  int64_t limit_ns;
  int64_t clock_offset;
} untax_kernel_state;
/* Fills `*state`, of which only `size` is read. It is valid as long as the world exists. In host
 * memory, where an interpreter carries kernels out on the CPU, untax_world_check of any rank
 * reports waits that gave up. */
UNTAX_API int32_t untax_world_kernel_state(untax_world* world, untax_kernel_state* state);
/* The address of the copy at `peer` of what `local` points to in symmetric memory. not_symmetric,
 * invalid_argument. */
UNTAX_API int32_t untax_world_translate(const untax_world* world, const void* local, int32_t peer,
                                        void** at_peer);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_WORLD_H */
