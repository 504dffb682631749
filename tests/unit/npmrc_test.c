#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "npm/npmrc.h"

/* All settings as "key=value;" or "key[]=value;". */
static int note(void *owner, const struct npmrc_line *line)
{
    return buf_printf(owner, "%s%s=%s;", line->key, line->is_list ? "[]" : "", line->value);
}

static void test_lines(void **state)
{
    static const struct {
        const char *text, *told;
    } rows[] = {
        {"registry=https://a.test/", "registry=https://a.test/;"},
        {"  registry  =  https://a.test/  \r\nx=1\r\n", "registry=https://a.test/;x=1;"},
        {"registry = \"https://a.test/\"", "registry=https://a.test/;"},
        {"registry = 'https://a.test/'", "registry=https://a.test/;"},
        {"registry=https://a.test/ ; mine", "registry=https://a.test/;"},
        {"registry=https://a.test/ # mine", "registry=https://a.test/;"},
        {"a=1\na=2", "a=1;a=2;"},
        {"#a=1\n ;a=1\n\n  \n", ""},
        {"a=b=c", "a=b=c;"},
        {"a", "a=true;"},
        {"a=", "a=;"},
        {"=x", ""},
        {"", ""},
        {"a=x\\;y\\#z\\\\n\\q", "a=x;y#z\\n\\q;"},
        {"a=x\\", "a=x\\;"},
        {"ca=\"one\\ntwo\"", "ca=one\ntwo;"},
        {"ca[]=1\nca[] = 2", "ca[]=1;ca[]=2;"},
        {"a=\"", "a=\";"},
        {"a='", "a=;"},
        {"a=\"x\" y\"", "a=\"x\" y\";"},
        {"a=1\n[b]\nc=2", "a=1;"},
        {"//host/:_authToken=t", "//host/:_authToken=t;"},
        {"\"quoted\"=1", "quoted=1;"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autobuf struct buf told;
        buf_init(&told, 1000);
        assert_int_equal(npmrc_parse(rows[i].text, note, &told), 0);
        assert_string_equal(buf_text(&told), rows[i].told);
    }
}

static const char *get(const char *name)
{
    return strcmp(name, "A") == 0 ? "one" : strcmp(name, "EMPTY") == 0 ? "" : NULL;
}

static void test_variables(void **state)
{
    static const struct {
        const char *text, *expanded;
        int         has;
    } rows[] = {
        {"${A}", "one", 1},
        {"x${A}y${A}",
         "xoney"
         "one",
         1},
        {"${B}", "${B}", 1},
        {"${B?}", "", 1},
        {"${A?}", "one", 1},
        {"${EMPTY}", "", 1},
        {"\\${A}", "${A}", 1},
        {"\\\\${A}", "\\one", 1},
        {"\\\\\\${A}", "\\${A}", 1},
        {"$A", "$A", 0},
        {"${}", "${}", 0},
        {"${A", "${A", 0},
        {"${A?x}", "${A?x}", 0},
        {"${${A}}", "${one}", 1},
        {"a\\b", "a\\b", 0},
        {"", "", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autobuf struct buf b;
        buf_init(&b, 1000);
        assert_int_equal(npmrc_expand(rows[i].text, get, &b), 0);
        assert_string_equal(buf_text(&b), rows[i].expanded);
        assert_int_equal(npmrc_has_variable(rows[i].text), rows[i].has);
    }
}

static void test_expansion_is_bounded(void **state)
{
    autobuf struct buf b;

    (void)state;
    buf_init(&b, 5);
    assert_int_equal(npmrc_expand("${A}${A}", get, &b), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_expansion_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
