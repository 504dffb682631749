/* jerboa man - the manual page, from the same tables as --help; run at build time, listed nowhere.
 */
#include <stdio.h>

#include "cli/verb.h"
#include "config.h"

/* roff takes a leading dot or quote for a request, and a bare dash for a hyphen. */
static void print_text(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '-' || *p == '\\')
            putchar('\\');
        else if (p == text && (*p == '.' || *p == '\''))
            fputs("\\&", stdout);
        putchar(*p);
    }
    putchar('\n');
}

static void print_option(const struct option *o)
{
    printf(".TP\n.B ");
    if (o->letter)
        printf("\\-%c, ", o->letter);
    printf("\\-\\-%s", o->name);
    if (o->argument)
        printf(" \\fI%s\\fR", o->argument);
    putchar('\n');
    print_text(o->help);
    if (o->second_env)
        printf("Also %s in the environment.\n", o->second_env);
}

static void print_verb(const struct verb *v)
{
    printf(".SH JERBOA %s\n.B jerboa\n", v->name);
    print_text(v->usage);
    printf(".PP\n");
    print_text(v->summary);
    for (const struct option *o = v->options; o->name; o++)
        print_option(o);
    if (v->details) {
        printf(".PP\n");
        print_text(v->details);
    }
}

static int man_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf(".TH JERBOA 1 \"\" \"jerboa %s\"\n.SH NAME\n"
           "jerboa \\- runs JavaScript in isolated Node.js sandboxes\n.SH SYNOPSIS\n",
           JERBOA_VERSION);
    for (const struct verb *const *v = verbs; *v; v++) {
        if (!(*v)->summary)
            continue;
        printf(".br\n.B jerboa\n");
        print_text((*v)->usage);
    }
    for (const struct verb *const *v = verbs; *v; v++)
        if ((*v)->summary)
            print_verb(*v);
    printf(".SH FILES\n.TP\n.I ~/.cache/jerboa\n"
           "The store of runtimes and dependencies; JERBOA_HOME or XDG_CACHE_HOME moves it.\n.TP\n"
           ".I /run/jerboa/ids\nThe uid ranges in use: a locked byte each.\n");
    return 0;
}

static const struct option options[] = {{0}};

const struct verb verb_man = {.name = "man", .usage = "man", .options = options, .main = man_main};
