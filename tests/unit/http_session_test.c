/* What the streams of sessions hold, without a transport. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/http_session.h"

enum { LARGE = 100 << 10 };

static const struct mcp_about about = {.name = "test", .version = "0"};

static struct world {
    struct event_base   *base;
    struct mcp_server   *server;
    struct http_sessions all;
    struct principal     ann, bob;
    char                 text[LARGE + 1];
} w;

static int set_up(void **state)
{
    (void)state;
    w = (struct world){.base = event_base_new(), .ann = {.name = "ann"}, .bob = {.name = "bob"}};
    memset(w.text, 'x', LARGE);
    w.server = mcp_server_new(w.base, &about, NULL);
    http_sessions_init(&w.all, w.server);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_sessions_done(&w.all);
    assert_int_equal(w.all.kept, 0);
    assert_int_equal(w.all.n + w.ann.sessions + w.bob.sessions, 0);
    mcp_server_free(w.server);
    event_base_free(w.base);
    return 0;
}

static struct http_stream *filled(struct http_session *s)
{
    struct http_stream *t = http_session_stream(s);

    for (int i = 0; i < 10; i++)
        http_stream_send(t, w.text);
    return t;
}

static void live_streams_are_bounded_together(void **state)
{
    struct http_session *s = http_session_new(&w.all, &w.ann);
    struct http_stream  *t[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        t[i] = filled(s);
    assert_in_range(s->kept, HTTP_SESSION_KEPT_MAX / 2, HTTP_SESSION_KEPT_MAX + 20 * (LARGE + 100));
    assert_int_equal(w.all.kept, s->kept);
    assert_true(sse_can_replay(&t[0]->sse, 0));
    for (int i = 0; i < 20; i++) { /* none lost its newest; who lost more is told so */
        assert_true(sse_can_replay(&t[i]->sse, 9));
        assert_ptr_equal(http_session_find_stream(s, t[i]->sse.number), t[i]);
    }
    assert_false(sse_can_replay(&t[19]->sse, 0));
}

static void those_that_ended_go_first(void **state)
{
    struct http_session *s = http_session_new(&w.all, &w.ann);
    struct http_stream  *live;

    (void)state;
    for (int i = 0; i < 4; i++)
        http_stream_end(filled(s));
    live = filled(s);
    assert_true(s->kept <= HTTP_SESSION_KEPT_MAX);
    assert_true(sse_can_replay(&live->sse, 0));
    assert_null(http_session_find_stream(s, 1));
    assert_non_null(http_session_find_stream(s, 4));
}

static void the_sum_of_all_sessions_holds(void **state)
{
    struct http_session *s;

    (void)state;
    for (int i = 0; i < 90; i++) { /* each within its own bound */
        s = http_session_new(&w.all, &w.ann);
        for (int k = 0; k < 4; k++)
            filled(s);
    }
    assert_in_range(w.all.kept, HTTP_SESSIONS_KEPT_MAX / 2,
                    HTTP_SESSIONS_KEPT_MAX + 400 * (LARGE + 100));
}

static void sessions_belong_to_one(void **state)
{
    struct http_session *s = http_session_new(&w.all, &w.ann);

    (void)state;
    assert_ptr_equal(http_session_find(&w.all, s->id, &w.ann), s);
    assert_null(http_session_find(&w.all, s->id, &w.bob));
    assert_null(http_session_find(&w.all, "", &w.ann));
    while (!principal_has_all_sessions(&w.ann))
        assert_non_null(http_session_new(&w.all, &w.ann));
    assert_null(http_session_new(&w.all, &w.ann));
    assert_non_null(http_session_new(&w.all, &w.bob));
    assert_false(principal_has_all_sessions(&w.bob));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(live_streams_are_bounded_together),
        TEST(those_that_ended_go_first),
        TEST(the_sum_of_all_sessions_holds),
        TEST(sessions_belong_to_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
