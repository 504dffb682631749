/* inbox - the server's frames, taken apart and handed to the channels. HELLO must come first. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct inbox {
    struct buf bytes;
    bool       greeted;
};

void inbox_init(struct inbox *in);
void inbox_done(struct inbox *in);
void inbox_send_hello(void);

/* Reads once and handles every whole frame: 1 to go on, 0 at the end of input (a frame cut in half
 * included: the server died), -1 when the server broke the protocol. */
int inbox_read(struct inbox *in, int fd, struct err *e);
