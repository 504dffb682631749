/* names - the made-up addresses of one sandbox: each name that it looked up has one of
 * 198.18.0.0/15, so that a connection tells by its address which name was meant. Their number is
 * bounded, and none is forgotten while the sandbox lives. */
#pragma once

#include "egress/ip.h"

struct names;

struct names *names_new(void);
void          names_free(struct names *n);

int         names_take(struct names *n, const char *name, struct ip *ret); /* -1: too many */
bool        names_is_made_up(const struct ip *address);
const char *names_find(const struct names *n, const struct ip *address); /* NULL: nobody's */
