// Work that streams left behind when the program destroyed them: waits for their context are for
// it, too.
#pragma once

#include <cuda.h>

namespace deepum::hooks {

// Before the driver destroys the stream. False: what it leaves cannot be known.
bool leave_work_behind(CUstream stream, CUcontext context) noexcept;
// Asks after each of the context's, by the driver's cuEventQuery or cuEventSynchronize, and forgets
// what is done. False: some is not.
bool work_left_is_done(CUcontext context, CUresult (*ask)(CUevent));
void forget_work_left(CUcontext context) noexcept;  // it has ended, and all that was behind it
// In a forked child. False: another thread was at it, and what there was is not known.
bool abandon_work_left_in_child() noexcept;

}  // namespace deepum::hooks
