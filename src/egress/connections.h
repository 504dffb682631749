/* connections - what code in a sandbox connects to: each passes gates, then is carried. */
#pragma once

#include "egress/egress_private.h"

void connections_open(struct egress *e, const struct frame *f);  /* CONNECT */
void connections_frame(struct egress *e, const struct frame *f); /* what follows it */
void connections_go_on(struct egress *e);
bool connections_are_sending(const struct egress *e);
void connections_judge(struct egress *e); /* the policies have changed */
void connections_free(struct egress *e);  /* all of them */
