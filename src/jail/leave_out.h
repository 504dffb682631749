/* leave_out - where a wall can be left out, so that tests/escape sees what it keeps from happening.
 *
 * The programs that are installed have nothing of it: here each question is a constant. The jail of
 * the escape tests alone is built with JAIL_TEST and answers from a file that lies beside it
 * (tests/escape/leave_out.c); those tests also show that the other one has no such code.
 *
 * What can be left out is asked for where a table is walked, by kind and name:
 *   step NAME         of steps.c
 *   namespace NAME    of the clone
 *   KIND TARGET       an entry of the plan
 *   writable TARGET   its mount is not read-only
 *   devices TARGET    its mount has devices
 *   limit NAME        of resources or of the disk
 *   call NAME         it passes the filter, whatever its arguments
 *   old root          stays, stacked on the new one
 *   own uids          all sandboxes have the first range
 *   hidepid TARGET    proc shows what may not be traced
 *   overlay layer     the layer itself stands in its place
 *   writable layer    and is not read-only
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef JAIL_TEST

bool jail_leaves_out(const char *kind, const char *name);

/* The filter, with holes for the calls that are left out. */
const struct sock_filter *jail_filter(const struct sock_filter *code, size_t *n);

#else

static inline bool jail_leaves_out(const char *kind, const char *name)
{
    (void)kind, (void)name;
    return false;
}

static inline const struct sock_filter *jail_filter(const struct sock_filter *code, size_t *n)
{
    (void)n;
    return code;
}

#endif
