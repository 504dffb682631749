/* alone - what a jail does before init runs, done by init itself where there is none.
 *
 * An engine that is not native starts init in a container of somebody else's making, as its root
 * and with a few capabilities. Here init uses them and gives all of it up, before any code runs:
 * afterwards it has no right that native's init lacks. */
#pragma once

#include "base/err.h"
#include "init/words.h"

int alone_begin(const struct words *w, struct err *e);

/* Before it exits: nothing runs any more, and it has lived for a while. Docker 20.10 may keep for
 * ever what ends while it is being started. */
void alone_end(void);
