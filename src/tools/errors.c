#include "tools/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

enum { INTERNAL_ERROR = -32603 };

static char *format_line(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

static char *format_line(const char *format, va_list ap)
{
    char *text = str_vformat(format, ap);

    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return text;
}

static void add(struct mcp_call *c, const char *text)
{
    mcp_call_text(c, text);
    mcp_call_set_failed(c);
}

void errors_add_text(struct mcp_call *c, const char *format, ...)
{
    autofree char *text = NULL;
    va_list        ap;

    va_start(ap, format);
    text = format_line(format, ap);
    va_end(ap);
    add(c, text);
}

void errors_add_quote(struct mcp_call *c, const char *words, const char *format, ...)
{
    autofree char *text = NULL, *quote = NULL;
    va_list        ap;

    va_start(ap, format);
    text = format_line(format, ap);
    va_end(ap);
    quote = str_format("%s:\n%s", text, words);
    add(c, quote);
}

void errors_end_tool(struct mcp_call *c, const char *format, ...)
{
    autofree char *text = NULL;
    va_list        ap;

    va_start(ap, format);
    text = format_line(format, ap);
    va_end(ap);
    add(c, text);
    mcp_call_done(c);
}

void errors_end_read(struct mcp_call *c, const char *format, ...)
{
    autofree char *text = NULL;
    va_list        ap;

    va_start(ap, format);
    text = format_line(format, ap);
    va_end(ap);
    mcp_call_error(c, INTERNAL_ERROR, text, NULL);
}

/* ---- docs/errors.md ---- */

/* A conversion becomes what it stands for: "…". */
static void print_plain(const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "%");
        printf("%.*s", (int)plain, text);
        text += plain;
        if (!*text)
            return;
        text += strcspn(text, "sdu") + 1;
        printf("…");
    }
}

void errors_print(void)
{
    static const char *const rows[][3] = {
#define ERRORS_ROW(name, text, remedy) {#name, text, remedy},
        ERRORS(ERRORS_ROW)
#undef ERRORS_ROW
    };

    printf("# What can go wrong, and what to do\n\n"
           "Every error text of the tools and resources, as `jerboa errors` prints it from "
           "`src/tools/errors.h`; `…` stands for what differs. An agent reads `text: what to do.` "
           "in a result with `isError`; the last two, of resources, are errors of the protocol.\n\n"
           "Not of this table is what the protocol says by itself: arguments that do not fit their "
           "schema (`isError`, names the argument and what it must be), tools and resources that "
           "do not exist.\n\n"
           "| error | text | what to do |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        printf("| `%s` | ", rows[i][0]);
        print_plain(rows[i][1]);
        printf(" | ");
        print_plain(rows[i][2]);
        printf(" |\n");
    }
}
