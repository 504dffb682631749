#include "tools/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

static const struct {
    const char *name, *format, *text, *remedy;
} rows[] = {
#define ERRORS_ROW(name, text, remedy) {#name, text ": " remedy ".", text, remedy},
    ERRORS(ERRORS_ROW)
#undef ERRORS_ROW
};

/* The formats are the table's: their arguments stand beside them in errors.h. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void add_text(struct mcp_call *c, enum error_id id, va_list ap)
{
    autofree char *text = str_vformat(rows[id].format, ap);

    mcp_call_text(c, text);
    mcp_call_set_failed(c);
}

void errors_text(struct mcp_call *c, enum error_id id, ...)
{
    va_list ap;

    va_start(ap, id);
    add_text(c, id, ap);
    va_end(ap);
}

void errors_fail(struct mcp_call *c, enum error_id id, ...)
{
    va_list ap;

    va_start(ap, id);
    add_text(c, id, ap);
    va_end(ap);
    mcp_call_done(c);
}

/* A conversion becomes what it stands for: "…". */
static void print_plain(const char *text)
{
    for (; *text; text++)
        if (*text != '%')
            putchar(*text);
        else {
            text += strcspn(text, "sduz");
            if (*text == 'z')
                text++;
            printf("…");
        }
}

void errors_print(void)
{
    printf("# What can go wrong, and what to do\n\n"
           "Every error text of the tools, printed by `jerboa errors` from `src/tools/errors.h`. "
           "`…` stands for what differs.\n\n"
           "| error | text | what to do |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        printf("| %s | ", rows[i].name);
        print_plain(rows[i].text);
        printf(" | ");
        print_plain(rows[i].remedy);
        printf(" |\n");
    }
}
