#pragma once

#include <untax/select/schema.hpp>
#include <untax/select/table.hpp>

#include "src/select/cells.hpp"

namespace untax::select {

/// The table of cells with one row for each input.
[[nodiscard]] table table_of(const cells& from, const schema& what);
/// `from`, widened if they are those of a long table.
[[nodiscard]] cells wide_cells(cells from, const schema& what);

}  // namespace untax::select
