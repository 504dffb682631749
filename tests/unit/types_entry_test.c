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
#include "npm/types_entry.h"

/* Files are separated by blanks; the expected one, or NULL. */
static const struct {
    const char *package, *files, *expected;
} rows[] = {
    /* nothing, and what is there without being named */
    {"{}", "", NULL},
    {"{}", "lib/a.d.ts", NULL},
    {"{}", "index.d.ts", "index.d.ts"},
    {"{}", "index.d.mts", "index.d.mts"},
    {"{}", "index.d.cts index.d.ts", "index.d.ts"},
    {"{\"main\":\"lib/a.js\"}", "lib/a.d.ts index.d.ts", "lib/a.d.ts"},
    {"{\"main\":\"lib/a.js\"}", "index.d.ts", "index.d.ts"},
    {"{\"main\":\"./lib\"}", "lib/index.d.ts", "lib/index.d.ts"},
    {"{\"main\":\"lib/\"}", "lib/index.d.ts", "lib/index.d.ts"},
    {"{\"main\":\"lib/a\"}", "lib/a.d.ts", "lib/a.d.ts"},
    {"{\"main\":\"a.mjs\"}", "a.d.ts a.d.mts", "a.d.mts"},
    {"{\"main\":\"a.cjs\"}", "a.d.ts a.d.cts", "a.d.cts"},
    {"{\"main\":\".\"}", "index.d.ts", "index.d.ts"},
    /* types, typings */
    {"{\"types\":\"a.d.ts\"}", "a.d.ts index.d.ts", "a.d.ts"},
    {"{\"types\":\"./a\"}", "a.d.ts", "a.d.ts"},
    {"{\"types\":\"dist\"}", "dist/index.d.ts", "dist/index.d.ts"},
    {"{\"types\":\"src/a.ts\"}", "src/a.ts", "src/a.ts"},
    {"{\"typings\":\"a.d.ts\",\"types\":\"b.d.ts\"}", "a.d.ts b.d.ts", "b.d.ts"},
    {"{\"typings\":\"a.d.ts\"}", "a.d.ts", "a.d.ts"},
    {"{\"types\":\"gone.d.ts\",\"main\":\"m.js\"}", "m.d.ts", "m.d.ts"},
    {"{\"types\":7,\"main\":[]}", "index.d.ts", "index.d.ts"},
    /* exports: a text, conditions, paths */
    {"{\"exports\":\"./a.js\"}", "a.d.ts index.d.ts", "a.d.ts"},
    {"{\"exports\":[\"./gone.js\",\"./a.js\"]}", "a.d.ts", "a.d.ts"},
    {"{\"exports\":{\"types\":\"./t.d.ts\",\"default\":\"./a.js\"}}", "t.d.ts a.d.ts", "t.d.ts"},
    {"{\"exports\":{\".\":\"./a.mjs\"}}", "a.d.mts a.d.ts", "a.d.mts"},
    {"{\"exports\":{\".\":{\"default\":\"./a.js\",\"types\":\"./t.d.ts\"}}}", "t.d.ts a.d.ts",
     "t.d.ts"},
    {"{\"exports\":{\".\":{\"types\":\"./t.d.ts\"}},\"types\":\"o.d.ts\"}", "t.d.ts o.d.ts",
     "t.d.ts"},
    {"{\"exports\":{\".\":{\"types\":\"./gone.d.ts\"}},\"types\":\"o.d.ts\"}", "o.d.ts", "o.d.ts"},
    {"{\"exports\":{\".\":null},\"types\":\"o.d.ts\"}", "o.d.ts", "o.d.ts"},
    {"{\"exports\":{}}", "index.d.ts", "index.d.ts"},
    /* nested: types of an import go before those of a require */
    {"{\"exports\":{\".\":{\"require\":{\"types\":\"./r.d.cts\"},\"import\":{\"types\":\"./"
     "i.d.mts\"}}}}",
     "r.d.cts i.d.mts", "i.d.mts"},
    {"{\"exports\":{\".\":{\"require\":{\"types\":\"./r.d.cts\"},\"import\":{\"types\":\"./"
     "i.d.mts\"}}}}",
     "r.d.cts", "r.d.cts"},
    {"{\"exports\":{\".\":{\"types\":{\"require\":\"./r.d.cts\",\"import\":\"./i.d.mts\"}}}}",
     "r.d.cts i.d.mts", "i.d.mts"},
    {"{\"exports\":{\".\":{\"node\":{\"import\":{\"default\":\"./a.mjs\"}}}}}", "a.d.mts",
     "a.d.mts"},
    {"{\"exports\":{\".\":{\"browser\":\"./b.js\",\"default\":\"./a.js\"}}}", "a.d.ts b.d.ts",
     "a.d.ts"},
    {"{\"exports\":{\".\":{\"browser\":\"./b.js\"}}}", "b.d.ts", "b.d.ts"},
    /* types of a version of the compiler */
    {"{\"exports\":{\".\":{\"types@<4\":\"./old.d.ts\",\"types\":\"./t.d.ts\"}}}",
     "old.d.ts t.d.ts", "t.d.ts"},
    {"{\"exports\":{\".\":{\"types@>=5\":\"./new.d.ts\",\"types\":\"./t.d.ts\"}}}",
     "new.d.ts t.d.ts", "new.d.ts"},
    {"{\"exports\":{\".\":{\"types@<4\":\"./old.d.ts\"}}}", "old.d.ts", NULL},
    {"{\"exports\":{\".\":{\"types@banana\":\"./t.d.ts\"}}}", "t.d.ts", NULL},
    /* no main path: the first that has types */
    {"{\"exports\":{\"./a\":\"./a.js\",\"./b\":{\"types\":\"./b.d.ts\"}}}", "b.d.ts", "b.d.ts"},
    /* what leads out, or is not of the package */
    {"{\"exports\":\"a.js\"}", "a.d.ts", NULL},
    {"{\"exports\":\"./../a.d.ts\"}", "a.d.ts", NULL},
    {"{\"types\":\"../../a.d.ts\"}", "a.d.ts", NULL},
    {"{\"types\":\"b/../a.d.ts\"}", "a.d.ts", "a.d.ts"},
    {"{\"types\":\"/a.d.ts\"}", "a.d.ts", "a.d.ts"},
    {"{\"types\":\"\"}", "index.d.ts", "index.d.ts"},
    /* typesVersions */
    {"{\"types\":\"index.d.ts\",\"typesVersions\":{\">=4.0\":{\"*\":[\"ts4/*\"]}}}",
     "index.d.ts ts4/index.d.ts", "ts4/index.d.ts"},
    {"{\"types\":\"index.d.ts\",\"typesVersions\":{\"<=4.0\":{\"*\":[\"ts4/*\"]}}}",
     "index.d.ts ts4/index.d.ts", "index.d.ts"},
    {"{\"types\":\"./index.d.ts\",\"typesVersions\":{\"*\":{\"*\":[\"gone/*\",\"t/*\"]}}}",
     "index.d.ts t/index.d.ts", "t/index.d.ts"},
    {"{\"types\":\"index.d.ts\",\"typesVersions\":{\"*\":{\"index.d.ts\":[\"exact.d.ts\"],\"*\":["
     "\"t/*\"]}}}",
     "exact.d.ts t/index.d.ts", "exact.d.ts"},
    {"{\"types\":\"lib/a.d.ts\",\"typesVersions\":{\"*\":{\"*\":[\"x/*\"],\"lib/*\":[\"y/*\"]}}}",
     "x/lib/a.d.ts y/a.d.ts", "y/a.d.ts"},
    {"{\"typesVersions\":{\"*\":{\"*\":[\"t/*\"]}}}", "t/index.d.ts", "t/index.d.ts"},
    {"{\"types\":\"index.d.ts\",\"typesVersions\":{\"*\":{\"*\":[\"../../*\"]}}}", "index.d.ts",
     "index.d.ts"},
    {"{\"types\":\"a.d.ts\",\"typesVersions\":{\"*\":[7],\"5\":null}}", "a.d.ts", "a.d.ts"},
};

static void add_files(struct declarations *d, const char *names)
{
    autofree char *copy = str_dup(names);

    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " "))
        declarations_add(d, name, 1);
    declarations_sort(d);
}

static void entries(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct declarations       d = {0};
        autojson json_t          *package = json_loads(rows[i].package, 0, NULL);
        const struct declaration *found;

        assert_non_null(package);
        add_files(&d, rows[i].files);
        found = types_entry(package, &d);
        if ((found != NULL) != (rows[i].expected != NULL) ||
            (found && strcmp(found->path, rows[i].expected) != 0))
            fail_msg("%s with %s: %s, not %s", rows[i].package, rows[i].files,
                     found ? found->path : "none", rows[i].expected ? rows[i].expected : "none");
        declarations_done(&d);
    }
}

/* Each level doubles what a careless search looks at; too deep is none. */
static void deep_conditions(void **state)
{
    struct declarations d = {0};
    json_t             *target = json_string("./t.d.ts"), *package;

    (void)state;
    add_files(&d, "t.d.ts");
    for (int i = 0; i < 1000; i++) {
        json_t *outer = json_object();
        json_object_set(outer, "types", target);
        json_object_set(outer, "import", target);
        json_object_set_new(outer, "default", target);
        target = outer;
    }
    package = json_pack("{s:o}", "exports", target);
    assert_null(types_entry(package, &d));
    json_decref(package);
    declarations_done(&d);
}

static void imports(void **state)
{
    static const struct {
        const char *from, *module, *expected;
    } cases[] = {
        {"a/b.d.ts", "./c", "a/c.d.ts"},        {"a/b.d.ts", "./c.js", "a/c.d.ts"},
        {"a/b.d.ts", "../d", "d/index.d.ts"},   {"a/b.d.ts", "..", "index.d.ts"},
        {"a/b.d.ts", ".", "a/index.d.ts"},      {"a/b.d.ts", "../../x", NULL},
        {"a/b.d.ts", "./e.mjs", "a/e.d.mts"},   {"a/b.d.ts", "./e.cjs", "a/e.d.cts"},
        {"a/b.d.ts", "./c.d.ts", "a/c.d.ts"},   {"a/b.d.ts", "./c.json", NULL},
        {"index.d.ts", "./a/c.js", "a/c.d.ts"}, {"index.d.ts", "./a", "a/index.d.ts"},
        {"a/b.d.ts", "c.d.ts", "a/c.d.ts"},     {"a/b.d.ts", "./f.ts", "a/f.d.ts"},
        {"a/b.d.ts", ".//./c", "a/c.d.ts"},
    };
    struct declarations d = {0};

    (void)state;
    add_files(
        &d, "index.d.ts a/b.d.ts a/c.d.ts a/e.d.mts a/e.d.cts a/f.d.ts a/index.d.ts d/index.d.ts");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct declaration *found = declarations_find(&d, cases[i].from, cases[i].module);
        if ((found != NULL) != (cases[i].expected != NULL) ||
            (found && strcmp(found->path, cases[i].expected) != 0))
            fail_msg("%s in %s: %s", cases[i].module, cases[i].from, found ? found->path : "none");
    }
    declarations_done(&d);
}

/* Directories with a package.json of their own; each is asked for from the package's entry. */
static void directories(void **state)
{
    static const struct {
        const char *means, *module, *expected;
    } cases[] = {
        {"../dist/sub.d.ts", "./sub", "dist/sub.d.ts"},
        {"../dist/sub.js", "./sub/", "dist/sub.d.ts"},
        {"../dist/sub", "./sub", "dist/sub.d.ts"},
        {"lib", "./sub", "sub/lib/index.d.ts"},
        {"./other", "./sub", "sub/other.d.ts"},
        {"gone.d.ts", "./sub", "sub/index.d.ts"}, /* then it means nothing */
        {"../../out", "./sub", "sub/index.d.ts"},
        {"", "./sub", "sub/index.d.ts"},
        {".", "./sub", "sub/index.d.ts"},
        {"../more", "./sub", "more/index.d.ts"},      /* whose own is not asked */
        {"./other", "./sub/index", "sub/index.d.ts"}, /* no directory */
        {"./other", "./sub/package.json", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct declarations       d = {0};
        const struct declaration *found;

        declarations_add_directory(&d, "sub/package.json", cases[i].means);
        declarations_add_directory(&d, "more/package.json", "../sub");
        add_files(&d, "index.d.ts dist/sub.d.ts sub/lib/index.d.ts sub/other.d.ts sub/index.d.ts "
                      "more/index.d.ts");
        found = declarations_find(&d, "index.d.ts", cases[i].module);
        if ((found != NULL) != (cases[i].expected != NULL) ||
            (found && strcmp(found->path, cases[i].expected) != 0))
            fail_msg("%s that means %s: %s", cases[i].module, cases[i].means,
                     found ? found->path : "none");
        declarations_done(&d);
    }
}

static void names_of_the_package(void **state)
{
    static const char imports[] =
        "{\"imports\":{\"#a\":\"./lib/a.js\",\"#b\":{\"types\":\"./t/b.d.ts\",\"default\":\"./lib/"
        "a.js\"},\"#require\":{\"require\":\"./lib/a.js\"},\"#all/*\":\"./lib/*.js\",\"#all/t/*\":"
        "\"./t/*.js\",\"#*.js\":[\"./gone/*.js\",\"./t/*.js\"],\"#dep\":\"other-package\",\"#out\":"
        "\"./../a.d.ts\",\"#out/*\":\"./lib/*\",\"#none\":null,\"#star\":\"./*\"}}";
    static const struct {
        const char *name, *expected;
    } cases[] = {
        {"#a", "lib/a.d.ts"},
        {"#b", "t/b.d.ts"}, /* types before all else */
        {"#require", "lib/a.d.ts"},
        {"#all/a", "lib/a.d.ts"},
        {"#all/t/b", "t/b.d.ts"}, /* the longest beginning */
        {"#b.js", "t/b.d.ts"},
        {"#all/gone", NULL},
        {"#dep", NULL},
        {"#out", NULL},
        {"#out/../../a.d.ts", NULL},
        {"#none", NULL},
        {"#star", NULL},
        {"#unknown", NULL},
        {"#", NULL},
    };
    autojson json_t    *package = json_loads(imports, 0, NULL);
    struct declarations d = {0};

    (void)state;
    assert_non_null(package);
    add_files(&d, "a.d.ts lib/a.d.ts t/b.d.ts");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct declaration *found = types_import(package, &d, cases[i].name);
        if ((found != NULL) != (cases[i].expected != NULL) ||
            (found && strcmp(found->path, cases[i].expected) != 0))
            fail_msg("%s: %s", cases[i].name, found ? found->path : "none");
    }
    assert_null(types_import(NULL, &d, "#a"));
    declarations_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries),
        cmocka_unit_test(deep_conditions),
        cmocka_unit_test(imports),
        cmocka_unit_test(directories),
        cmocka_unit_test(names_of_the_package),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
