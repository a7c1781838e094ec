#ifndef UNTAX_UNTAX_H
#define UNTAX_UNTAX_H

/* untax for C, and for all languages that can call C. docs/c.md tells how to build with it.
 *
 * Errors. A function that can fail returns an `untax_status`: `untax_ok`, which is 0, or the kind
 * of failure. `untax_last_error` has the text of the calling thread's last failure. Results are
 * written only if the call succeeds. No function throws, prints or ends the process. The only state
 * outside of objects is the last error of each thread, and the trace if one is being recorded.
 *
 * Threads. A world, with all that was made on it, is used by one thread at a time;
 * `untax_world_fail` may be called by any. Worlds of several ranks in one process go to a thread
 * each, since calls that are marked collective wait for the other ranks.
 *
 * Ownership. Who makes a world or an operator destroys it. Names, texts and addresses that
 * functions return belong to the object, and are valid until it is destroyed. Memory that is passed
 * in stays the caller's.
 *
 * Structures. Problems and options begin with `size`, which the caller sets to sizeof of the
 * structure. Other fields may stay zero, which selects the default. So a program that was compiled
 * against an older header works with a newer library. Fields that an older library does not know
 * have to be zero; else the call is `untax_unsupported`. */

#include <untax/c/all_reduce_norm.h>
#include <untax/c/collectives.h>
#include <untax/c/decoder.h>
#include <untax/c/flash_attention.h>
#include <untax/c/flash_decode.h>
#include <untax/c/gemm.h>
#include <untax/c/library.h>
#include <untax/c/linear.h>
#include <untax/c/merge_partial_attention.h>
#include <untax/c/operator.h>
#include <untax/c/rope_append.h>
#include <untax/c/select.h>
#include <untax/c/sparse.h>
#include <untax/c/trace.h>
#include <untax/c/world.h>

#endif /* UNTAX_UNTAX_H */
