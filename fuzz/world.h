/* world - init's world for its fuzzer: nothing is started, no file of the host is touched.
 *
 * A program is three pipes and a row in a table; what it does is the first letter of the last part
 * of argv[0]: `c`at copies its stdin to its stdout, `y`es writes while it can, `x` exits at once,
 * `n` cannot be started, `k` kills its leader, any other waits to be killed. These use the network:
 * `t` connects and sends back what it gets, `f` connects and writes while it can, `h` connects,
 * says something and half closes, `r` connects and hangs up when something came, `d` looks names
 * up. The doors are unix sockets. `s` is a server that sends back what it gets, for who dials, `l`
 * one on IPv6 alone; nobody listens on port 1. The workspace is a directory in /tmp, which init
 * only reads. A file is a memfd; one whose name begins with `n` cannot be made, with `w` not be
 * written, with `p` not be given its name.
 *
 * The linker sends init's kill and wait4 here (--wrap): the processes exist in the table only. */
#pragma once

#include <stdbool.h>

void world_turn(void);         /* every program does a little */
void world_reset(void);        /* all of them are gone */
void world_give_leaders(void); /* from now on: as where there is no jail (init/leader.h) */
