#pragma once

namespace untax {

/// Ends the recording, if there is one, because the program ends. Unlike `stop_trace` it leaves the
/// file alone if nothing was recorded: a command that was refused does not replace a trace that is
/// there. Throws `internal` if the file cannot be written.
void end_trace();

}  // namespace untax
