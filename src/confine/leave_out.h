/* leave_out - where a program that confines itself can leave a wall out, and behave as one that was
 * taken over: for tests/escape/programs.test.mjs.
 *
 * The programs that are installed have nothing of it. Those of the tests alone are built with
 * CONFINE_TEST, and ask a file that lies beside them (tests/escape/taken_over.c). */
#pragma once

#include <stdbool.h>

#ifdef CONFINE_TEST

bool confine_leaves_out(const char *role, const char *wall);
void confine_taken_over(const char *role); /* all walls of this role stand */

#else

static inline bool confine_leaves_out(const char *role, const char *wall)
{
    (void)role, (void)wall;
    return false;
}

static inline void confine_taken_over(const char *role)
{
    (void)role;
}

#endif
