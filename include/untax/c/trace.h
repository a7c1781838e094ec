#ifndef UNTAX_C_TRACE_H
#define UNTAX_C_TRACE_H

#include <untax/c/library.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Records the operators that this process makes from now on, and writes them to the file `path`,
 * which Perfetto opens, when the trace is stopped. On GPUs they record only in a build with kernel
 * traces; in other builds plans fail with untax_unsupported meanwhile. UNTAX_TRACE does the same
 * for a whole program. If ranks are processes, each of them calls it, with the same path.
 * untax_invalid_argument if the file cannot be written, or if a trace is being recorded already. */
UNTAX_API int32_t untax_trace_start(const char* path);

/* Ends the trace and writes it. No operator may run meanwhile. `events` and `lost`, which may be
 * NULL, get the number of events in the file, and of those that did not fit in memory.
 * untax_invalid_argument if no trace is being recorded, untax_internal if the file cannot be
 * written. */
UNTAX_API int32_t untax_trace_stop(int64_t* events, int64_t* lost);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_TRACE_H */
