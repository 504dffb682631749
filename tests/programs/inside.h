/* inside - a network like a sandbox's, and the real init in it, for tests and figures.
 *
 * inside_enter takes the calling process, which must be a child of the test with one thread, into a
 * user and a network namespace of its own; no rights are needed. inside_start runs init there, and
 * the process is its server. What fails is told on stderr and ends the process with 1. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "pipe/message.h"

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s (%m)\n", __FILE__, __LINE__, #what);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

void inside_enter(void);    /* lo is up */
void inside_redirect(void); /* the jail's rules */

/* Runs a test in a child that has entered, within `seconds`: as whoever we are and, if that is
 * root, once more as nobody. 0, or how the one that failed ended. `path`: a program that the test
 * will execute; where nobody may not, he does not try. NULL: none. */
int inside_run(void (*test)(void), unsigned seconds, const char *path);

/* ---- init ---- */

struct inside {
    pid_t      pid;
    int        to_init, from_init;
    struct buf in;
    size_t     looked_at; /* bytes of the frames that inside_next gave */
};

void inside_start(struct inside *s, const char *init_path, const char *word);
void inside_end(struct inside *s);

/* Waits for a frame of init, at most ms; false: none came. The payload is good until the next. */
bool inside_next(struct inside *s, int ms, struct frame *ret);
void inside_send(struct inside *s, enum frame_type type, uint32_t channel, uint8_t stream,
                 const void *payload, size_t size);
void inside_send_credit(struct inside *s, uint32_t channel, uint32_t bytes);

/* ---- addresses and sockets, IPv4 or IPv6 by their text ---- */

union address {
    struct sockaddr     any;
    struct sockaddr_in  v4;
    struct sockaddr_in6 v6;
};

socklen_t     address_size(const union address *a);
union address address_of(const char *text, uint16_t port);
void          address_check(const union address *a, const char *text, uint16_t port);

/* All give a descriptor; connecting and sending also errno, or 0. */
int bound(int type, const char *text, uint16_t port);
int listener(const char *text, uint16_t port);
int connecting(const char *text, uint16_t port, int *ret_fd);
int sending(const char *text, uint16_t port, int *ret_fd);
