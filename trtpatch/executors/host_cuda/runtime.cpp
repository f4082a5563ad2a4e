// The runtime: one translation unit, compiled once a machine; see cuda_on_host.h.
#include "runtime.h"

#include "fibers.h"
#include "block.h"
#include "schedule.h"
#include "watch.h"
#include "meeting.h"
#include "launch.h"
#ifdef TRTPATCH_REPLAY
#include "replay.h"
#else
#include "guards.h"
#endif
