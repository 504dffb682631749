#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/str.h"
#include "npm/types_gather.h"
#include "npm/types_refs.h"

/* ---- which files a text names ---- */

static void note(void *owner, const char *path)
{
    buf_printf(owner, "%s ", path);
}

static void references(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"import { A } from './a';\nexport * from \"../b.js\"", "./a ../b.js "},
        {"import './side'; import type X from './x'; import y = require('./y');",
         "./side ./x ./y "},
        {"export declare const a: import('./a').A; type B = typeof import ( \"./b\" )", "./a ./b "},
        {"import x from 'package'; import fs from \"node:fs\"; export * from '#own'", "#own "},
        {"type A = import('#a/b.js').A; f('#no'); '#no'", "#a/b.js "},
        {"export {\n  A,\n  B,\n} from\n  './many'", "./many "},
        {"import {from} from './from'", "./from "},
        {"// import x from './no'\n/* from './no' */ /** import './no' */", ""},
        {"declare const a: './no'; const from = './no'; f('./no'); from: './no'", ""},
        {"/// <reference path=\"a.d.ts\" />\n/// <reference path='./b.d.ts'/>", "a.d.ts ./b.d.ts "},
        {"/// <reference types=\"node\" />\n/// <reference lib=\"es2020\" />", ""},
        {"/// <reference types = \"./g\" />\n/// <reference types='../h' preserve='true' />",
         "./g ../h "},
        {"/// <reference types=\"path\" preserve=\"./no\" />\n/// <reference types=\"", ""},
        {"// <reference path=\"no.d.ts\" />", ""},
        {"/// <reference path=\"no", ""},
        {"type T = `from './no'`; import a from './a'", "./a "},
        {"'it\\'s from'; import a from './a'", "./a "},
        {"'not closed\nimport a from './a'", "./a "},
        {"/* not closed import a from './no'", ""},
        {"import a from './a", "./a "},
        {"importx './no'; $from './no'; import \\", ""},
        {"import.meta; import a from './a'", "./a "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        autobuf struct buf seen;
        buf_init(&seen, 4096);
        types_refs(cases[i].text, strlen(cases[i].text), note, &seen);
        if (strcmp(buf_text(&seen), cases[i].expected) != 0)
            fail_msg("%s: %s", cases[i].text, buf_text(&seen));
    }
}

/* ---- the text ---- */

static void add(struct declarations *d, const char *path, const char *text)
{
    declarations_add(d, path, (int64_t)strlen(text));
    d->list[d->n - 1].text = str_dup(text);
    d->list[d->n - 1].text_size = strlen(text);
}

static void assert_gathered(struct declarations *d, const char *entry, size_t max, const char *text,
                            const char *left_out)
{
    autobuf struct buf seen;
    autojson json_t   *rows = json_array();
    autofree char     *shown = NULL;

    buf_init(&seen, max + 4096);
    for (size_t i = 0; i < d->n; i++)
        d->list[i].is_listed = false;
    types_gather(NULL, d, declarations_get(d, entry), max, &seen, rows);
    shown = json_dumps(rows, 0);
    assert_string_equal(buf_text(&seen), text);
    assert_string_equal(shown, left_out);
}

static void gathers(void **state)
{
    struct declarations d = {0};

    (void)state;
    add(&d, "index.d.ts", "export * from './a';\nexport * from './b';\n");
    add(&d, "a.d.ts", "import './index'; import './c';\n"); /* a circle */
    add(&d, "b.d.ts", "export const b: 'a rather long text that needs some room';\n");
    add(&d, "c.d.ts", "export {};\n");
    add(&d, "other.d.ts", "nobody names it\n");
    declarations_sort(&d);
    assert_gathered(&d, "index.d.ts", 1000,
                    "// index.d.ts\nexport * from './a';\nexport * from './b';\n\n"
                    "// a.d.ts\nimport './index'; import './c';\n\n"
                    "// b.d.ts\nexport const b: 'a rather long text that needs some room';\n\n"
                    "// c.d.ts\nexport {};\n",
                    "[]");
    /* what is too long is left out, what comes behind it is not */
    assert_gathered(&d, "index.d.ts", 150,
                    "// index.d.ts\nexport * from './a';\nexport * from './b';\n\n"
                    "// a.d.ts\nimport './index'; import './c';\n\n"
                    "// c.d.ts\nexport {};\n",
                    "[\"b.d.ts (59 bytes)\"]");
    /* the entry is cut at a line, and the files it names are still known */
    assert_gathered(&d, "index.d.ts", 45, "// index.d.ts\nexport * from './a';\n",
                    "[\"index.d.ts (only the first 21 of 42 bytes)\", \"a.d.ts (32 bytes)\", "
                    "\"b.d.ts (59 bytes)\", \"c.d.ts (11 bytes)\"]");
    declarations_done(&d);
}

/* Its name needs room, too. */
static void empty_files(void **state)
{
    struct declarations d = {0};

    (void)state;
    add(&d, "index.d.ts", "import './a';\n");
    add(&d, "a.d.ts", "");
    declarations_sort(&d);
    assert_gathered(&d, "index.d.ts", 39, "// index.d.ts\nimport './a';\n\n// a.d.ts\n", "[]");
    assert_gathered(&d, "index.d.ts", 38, "// index.d.ts\nimport './a';\n",
                    "[\"a.d.ts (0 bytes)\"]");
    declarations_done(&d);
}

static void follows_names_of_the_package(void **state)
{
    struct declarations d = {0};
    autobuf struct buf  text;
    autojson json_t    *rows = json_array(),
                    *package = json_loads("{\"imports\":{\"#own/*\":{\"types\":\"./t/*.d.ts\"}}}",
                                          0, NULL);

    (void)state;
    buf_init(&text, 4096);
    add(&d, "lib/index.d.ts", "export * from '#own/a';\nexport * from '../sub';\n");
    add(&d, "t/a.d.ts", "import '#not/there'\n");
    add(&d, "t/s.d.ts", "export {};\n");
    declarations_add_directory(&d, "sub/package.json", "../t/s.js");
    declarations_sort(&d);
    types_gather(package, &d, declarations_get(&d, "lib/index.d.ts"), 1000, &text, rows);
    assert_string_equal(buf_text(&text),
                        "// lib/index.d.ts\nexport * from '#own/a';\nexport * from '../sub';\n\n"
                        "// t/a.d.ts\nimport '#not/there'\n\n"
                        "// t/s.d.ts\nexport {};\n");
    assert_int_equal(json_array_size(rows), 0);
    declarations_done(&d);
}

/* An entry without room, and a hundred files that it names, whose names have so many digits. */
static void assert_rows(int digits, size_t count, const char *first, const char *last)
{
    struct declarations d = {0};
    autobuf struct buf  text, entry;
    autojson json_t    *rows = json_array();

    buf_init(&text, 4096);
    buf_init(&entry, 1 << 20);
    for (int i = 0; i < 100; i++) {
        autofree char *path = str_format("f%0*d.d.ts", digits, i);
        declarations_add(&d, path, 5); /* its text was not kept */
        buf_printf(&entry, "import './f%0*d';\n", digits, i);
    }
    add(&d, "index.d.ts", buf_text(&entry));
    declarations_sort(&d);
    types_gather(NULL, &d, declarations_get(&d, "index.d.ts"), 100, &text, rows);
    assert_int_equal(json_array_size(rows), count);
    if (first)
        assert_string_equal(json_string_value(json_array_get(rows, 1)), first);
    assert_string_equal(json_string_value(json_array_get(rows, count - 1)), last);
    assert_true(text.size <= 100);
    declarations_done(&d);
}

static void lists_so_many(void **state)
{
    (void)state;
    assert_rows(1, 41, "f0.d.ts (5 bytes)", "and 61 more");
    assert_rows(900, 10, NULL, "and 92 more"); /* 8 of these names are 8 KiB */
}

/* A file without a text still needs a line with its path. */
static void empty_files_need_room_too(void **state)
{
    struct declarations d = {0};

    (void)state;
    add(&d, "index.d.ts", "import './a'; import './b';\n");
    add(&d, "a.d.ts", "");
    add(&d, "b.d.ts", "");
    declarations_sort(&d);
    assert_gathered(&d, "index.d.ts", 53,
                    "// index.d.ts\nimport './a'; import './b';\n\n// a.d.ts\n",
                    "[\"b.d.ts (0 bytes)\"]");
    assert_gathered(&d, "index.d.ts", 52, "// index.d.ts\nimport './a'; import './b';\n",
                    "[\"a.d.ts (0 bytes)\", \"b.d.ts (0 bytes)\"]");
    declarations_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references),    cmocka_unit_test(gathers),
        cmocka_unit_test(empty_files),   cmocka_unit_test(follows_names_of_the_package),
        cmocka_unit_test(lists_so_many),
        cmocka_unit_test(empty_files_need_room_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
