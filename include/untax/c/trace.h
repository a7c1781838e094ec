#ifndef UNTAX_C_TRACE_H
#define UNTAX_C_TRACE_H

#include <untax/c/library.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Records what operators do that are made on the host from now on, in this process, and writes it
 * to the file `path`, which Perfetto opens, when the trace is stopped. UNTAX_TRACE does the same
 * for a whole program. With ranks as processes each of them calls it, with the same path.
 * untax_invalid_argument if the file cannot be written, or if a trace is being recorded. */
UNTAX_API int32_t untax_trace_start(const char* path);

/* Ends the trace and writes it. No operator may run meanwhile. `events` and `lost`, which may be
 * NULL, get how many events the file holds, and how many did not fit in memory.
 * untax_invalid_argument if no trace is being recorded, or if the file cannot be written. */
UNTAX_API int32_t untax_trace_stop(int64_t* events, int64_t* lost);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_TRACE_H */
