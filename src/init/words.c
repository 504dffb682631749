#include "init/words.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static int take_place(const char *text, struct words *w, struct err *e)
{
    char                   address[64];
    unsigned               port;
    struct redirect_place *p = &w->places[w->n_places];

    if (w->n_places == REDIRECT_PLACES_MAX || sscanf(text, "%63[^,],%u", address, &port) != 2 ||
        port > 65535)
        return err_set(e, ERR_INVALID, "loopback=%.60s is no place", text);
    p->family = strchr(address, ':') ? AF_INET6 : AF_INET;
    p->port = (uint16_t)port;
    if (inet_pton(p->family, address, p->address) != 1)
        return err_set(e, ERR_INVALID, "loopback=%.60s is no place", text);
    w->n_places++;
    return 0;
}

static int take_own(const char *path, struct words *w, struct err *e)
{
    if (w->n_own == WORDS_OWN_MAX || path[0] != '/')
        return err_set(e, ERR_INVALID, "own=%.60s is no place", path);
    w->own[w->n_own++] = path;
    return 0;
}

static int take(const char *word, struct words *w, struct err *e)
{
    long long fds;

    if (strcmp(word, "alone") == 0)
        w->alone = true;
    else if (strcmp(word, "egress") == 0)
        w->egress = true;
    else if (sscanf(word, "fds=%lld", &fds) == 1)
        w->fds = fds;
    else if (strncmp(word, "own=", 4) == 0)
        return take_own(word + 4, w, e);
    else if (strncmp(word, "loopback=", 9) == 0)
        return take_place(word + 9, w, e);
    else if (sscanf(word, "user=%u:%u", &w->uid, &w->gid) != 2)
        return err_set(e, ERR_INVALID, "init does not know the word '%.60s'", word);
    return 0;
}

int words_parse(int argc, char **argv, struct words *ret, struct err *e)
{
    *ret = (struct words){.fds = 1024};
    for (int i = 1; i < argc; i++)
        TRY(take(argv[i], ret, e));
    return 0;
}
