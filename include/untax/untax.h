#ifndef UNTAX_UNTAX_H
#define UNTAX_UNTAX_H

/* untax for C, and for all that can call C. docs/c.md tells how to build with it.
 *
 * Errors. Functions that can fail return an `untax_status`: `untax_ok`, which is 0, or why not.
 * What was wrong is in `untax_last_error`, of the calling thread. Results are written only where
 * the call went well. No function throws, prints or ends the process, and there is no state but the
 * last error of each thread, and the trace, if one is being recorded.
 *
 * Threads. A world, with all that was made on it, is used by one thread at a time;
 * `untax_world_fail` may be called by any. Worlds of several ranks in one process go to a thread
 * each, since calls that are marked collective wait for the other ranks.
 *
 * Ownership. Who makes a world or an operator destroys it. Names, texts and addresses that
 * functions give belong to the object, and are good until it is destroyed. Memory that is passed in
 * stays the caller's.
 *
 * Structures. Problems and options begin with `size`, which the caller sets to sizeof of the
 * structure; the rest may stay zero, which asks for what is usual. So a program that was compiled
 * against an older header works with a newer library. */

#include <untax/c/all_reduce_norm.h>
#include <untax/c/collectives.h>
#include <untax/c/flash_attention.h>
#include <untax/c/flash_decode.h>
#include <untax/c/gemm.h>
#include <untax/c/library.h>
#include <untax/c/merge_partial_attention.h>
#include <untax/c/operator.h>
#include <untax/c/select.h>
#include <untax/c/sparse.h>
#include <untax/c/trace.h>
#include <untax/c/world.h>

#endif /* UNTAX_UNTAX_H */
