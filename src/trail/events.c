#include "trail/events.h"

#include <stdio.h>
#include <string.h>

static const struct row {
    const char *name, *when, *members;
} rows[] = {
#define TRAIL_ROW(id, name, when, members) {#name, when, members},
    TRAIL_EVENTS(TRAIL_ROW)
#undef TRAIL_ROW
};

const char *events_name(enum trail_event event)
{
    return rows[event].name;
}

const char *events_members(enum trail_event event)
{
    return rows[event].members;
}

/* ---- docs/audit.md ---- */

static const char head[] =
    "# The audit log\n\n"
    "`jerboa serve --audit FILE` (or `jerboa run`, which tells of one call) writes who ran what, "
    "where it connected, and how it ended: a line "
    "of JSON an event, at the end of FILE. This page is what `jerboa events` prints from the table "
    "in `src/trail/events.h`.\n\n"
    "- FILE is opened before anybody is served, and made with mode 0600; what cannot be opened, is "
    "no regular file or lies below `--files` is refused in one sentence. It is only ever appended "
    "to, by one write a line: several servers can share it, and `chattr +a` can hold it.\n"
    "- A line never has code, commands, output, tokens or values of the environment: of code its "
    "sha256 and size (`printf %s \"$CODE\" | sha256sum`). Of ids of sandboxes and sessions, which "
    "can be rights, it has the beginning. Words that sandboxes and clients choose are cut after "
    "256 bytes, lists after 100 rows (then `…` follows), and everything beyond ASCII is escaped.\n"
    "- When FILE was renamed or removed (logrotate), the next line makes it anew: no signal is "
    "needed.\n"
    "- When a line cannot be written (a full disk), the work goes on; the log on stderr says so "
    "once, and `lines_lost` says how many as soon as one can be written. A line that a full disk "
    "cut in two is followed by a line break: skip what is no JSON, and empty lines. With "
    "`--audit-strict` nothing "
    "goes on unseen: a call is refused if its line cannot be written, and connections are refused "
    "until one can; what runs already is not ended. FILE should not share its file system with "
    "`--files`, which scripts can fill.\n"
    "- Every connection that is made is told, but with `--network host`, which is no wall: there "
    "code connects by itself, and nobody sees it. A sandbox makes at most `--connect-rate` of them "
    "a "
    "second, two lines each: keep that in mind when you choose where FILE lies. Of refusals the "
    "first hundred different ones of a call are told, and how many followed. Names that are only "
    "looked up are told when they are refused.\n"
    "- Not told: calls whose arguments do not fit their schema (nothing was done), what clients "
    "read as resources, what Jerboa itself, installers and install scripts fetch from "
    "registries.\n\n";

static void print_members(const char *words)
{
    for (const char *sep = ""; *words; sep = ", ") {
        size_t n = strcspn(words, " ");
        printf("%s`%.*s`", sep, (int)n, words);
        words += n + (words[n] == ' ');
    }
}

void events_print(void)
{
    static const char *const members[][2] = {
#define TRAIL_MEMBER(name, what) {name, what},
        TRAIL_MEMBERS(TRAIL_MEMBER)
#undef TRAIL_MEMBER
    };

    printf("%s## Events\n\n| event | written when | members, after `time`, `server`, `line`, "
           "`event` |\n|---|---|---|\n",
           head);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        printf("| `%s` | %s | ", rows[i].name, rows[i].when);
        print_members(rows[i].members);
        printf(" |\n");
    }
    printf("\n## Members\n\n| member | what it is |\n|---|---|\n");
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        printf("| `%s` | %s |\n", members[i][0], members[i][1]);
}
