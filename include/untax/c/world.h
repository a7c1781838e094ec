#ifndef UNTAX_C_WORLD_H
#define UNTAX_C_WORLD_H

#include <untax/c/library.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct untax_world_options {
  size_t size;
  size_t heap_bytes;     /* symmetric heap of each rank; 0: UNTAX_HEAP_BYTES, or 1 GiB */
  int64_t wait_limit_ms; /* after which a wait is an error; 0: UNTAX_WAIT_LIMIT_MS, or 20 s; -1: for
                            ever */
  int64_t join_limit_ms; /* in which all processes have to come; 0: UNTAX_JOIN_LIMIT_MS, or 60 s;
                            -1: for ever */
  int32_t memory;        /* untax_memory: where heaps of processes lie */
  int32_t ranks_per_gpu; /* of untax_world_gpus; 0: UNTAX_RANKS_PER_GPU, or 1 */
  int32_t heap_guards;   /* 1: guard bands between allocations, -1: none; 0: UNTAX_HEAP_GUARDS */
  int32_t gpu; /* of processes: 1 for the first GPU that this one sees, and so on; 0: by its rank */
} untax_world_options;

typedef enum untax_memory {
  untax_memory_default = 0, /* UNTAX_MEMORY, or host */
  untax_memory_host,
  untax_memory_cuda,
  untax_memory_automatic /* cuda if every process here has a GPU of its own, else host */
} untax_memory;

/* Gathers bytes of processes that are to become ranks: `mine` are `bytes` of this one; `all` has
 * room for ranks * bytes, and is filled in rank order. All ranks give equally many. Returns 0, or
 * anything else if it failed; then the world is not made. */
typedef int (*untax_exchange)(void* context, const void* mine, size_t bytes, void* all);

/* The views of `ranks` ranks that are threads of this process, into `worlds`: each is for a thread
 * of its own. `options` may be NULL, here and below. invalid_argument, out_of_memory. */
UNTAX_API int32_t untax_world_threads(int32_t ranks, const untax_world_options* options,
                                      untax_world** worlds);
/* The same on GPUs of this process, rank r on GPU r. The thread of a rank calls
 * untax_world_use_device first. unsupported if there are fewer GPUs, or if they cannot reach each
 * other. */
UNTAX_API int32_t untax_world_gpus(int32_t ranks, const untax_world_options* options,
                                   untax_world** worlds);
/* Collective. The rank of this process as its launcher describes it: `untax run --processes`,
 * torchrun, mpirun or srun; one rank alone where there is none. disagreement, timeout, peer_lost,
 * unsupported. */
UNTAX_API int32_t untax_world_from_environment(const untax_world_options* options,
                                               untax_world** world);
/* Collective. Rank `rank` of `ranks` processes of this host that can already exchange bytes; they
 * may be some of a larger job. `exchange` is called once, by the calling thread, with `context`. As
 * above, and aborted if `exchange` failed. */
UNTAX_API int32_t untax_world_from_exchange(int32_t rank, int32_t ranks, untax_exchange exchange,
                                            void* context, const untax_world_options* options,
                                            untax_world** world);
/* This rank has finished: peers that wait for it hear that it is lost. invalid_argument while
 * operators are left that were made on it; then nothing happens. NULL is fine. */
UNTAX_API int32_t untax_world_destroy(untax_world* world);
/* This rank has failed: all waits of all ranks end, with `text` as the reason, and this rank as the
 * suspect. Only the first one of a world counts. The world still has to be destroyed. */
UNTAX_API int32_t untax_world_fail(untax_world* world, const char* text);

UNTAX_API int32_t untax_world_rank(const untax_world* world);
UNTAX_API int32_t untax_world_size(const untax_world* world);
/* "threads", "processes", "GPUs" (of this process) or "alone". */
UNTAX_API const char* untax_world_kind(const untax_world* world);
/* The number of the rank's GPU; -1 if heaps lie in host memory. */
UNTAX_API int32_t untax_world_device(const untax_world* world);
/* How many ranks share a GPU: 1, unless they were asked to. */
UNTAX_API int32_t untax_world_ranks_per_gpu(const untax_world* world);
/* Makes the rank's GPU the current one of the calling thread; nothing in host memory. */
UNTAX_API int32_t untax_world_use_device(const untax_world* world);

/* Collective. Returns when all ranks have come; what they did before is visible after it. */
UNTAX_API int32_t untax_world_barrier(untax_world* world);
/* Collective. disagreement, at every rank, unless all ranks say the same of `what`. */
UNTAX_API int32_t untax_world_agree(untax_world* world, const char* what, const char* description);
/* Fails with the reason if the world was stopped, also by a kernel that gave up waiting: after
 * kernels of this rank have ended, it says whether they ended well. */
UNTAX_API int32_t untax_world_check(const untax_world* world);

/* Collective. `bytes` of symmetric memory at every rank, aligned to 512; `*local` is this rank's.
 * Nothing is cleared, and nobody waits unless the heap is full. `label` is for messages.
 * out_of_memory. */
UNTAX_API int32_t untax_world_allocate(untax_world* world, size_t bytes, const char* label,
                                       void** local);
/* Collective. No rank may touch it any more. What is left goes with the world. */
UNTAX_API int32_t untax_world_free(untax_world* world, void* local);
/* Where `peer` has what `local` points to in this rank's symmetric memory. not_symmetric. */
UNTAX_API int32_t untax_world_translate(const untax_world* world, const void* local, int32_t peer,
                                        void** at_peer);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_WORLD_H */
