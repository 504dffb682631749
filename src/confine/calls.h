/* calls - an allow-list of system calls, as a table that becomes a filter of the kernel.
 *
 * What no row allows gets ENOSYS, as in sandboxes: a library made for another kernel falls back. A
 * call of another architecture ends the program. The filter is made at run time from numbers alone,
 * in microseconds; the kernel remembers which calls pass whatever their arguments, so that a
 * long table costs nothing later. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/err.h"

/* Of an argument the low half counts, as for the kernel where it takes an int. */
struct call_test {
    uint32_t argument, mask, value; /* mask 0: no test */
};

struct call {
    int              number;
    struct call_test tests[2]; /* all must hold; a call may have several rows */
};

/* Rows. An architecture that never had a call has no row for it. */
#define CALL(name)                                                                                 \
    {                                                                                              \
        .number = SYS_##name                                                                       \
    }
#define CALL_IF(name, ...)                                                                         \
    {                                                                                              \
        .number = SYS_##name, .tests = { __VA_ARGS__ }                                             \
    }

int calls_allow(const struct call *calls, size_t n, struct err *e); /* wants no_new_privs first */
