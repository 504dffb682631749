#include "cli/run_trail.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static const char tool[] = "jerboa run";

static void on_note(const char *sentence)
{
    fprintf(stderr, "jerboa: %s\n", sentence);
}

static struct trail_subject subject_of(const void *owner)
{
    const struct run_trail *t = owner;

    return t->subject;
}

/* "@scope/name@^4" is a name and a version; without one, it is the latest. */
static json_t *packages(const struct option_list *deps)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < deps->n; i++) {
        const char *text = deps->items[i], *at = *text ? strchr(text + 1, '@') : NULL;
        size_t      n = at ? (size_t)(at - text) : strlen(text);
        json_array_append_new(
            rows, json_pack("{s:o, s:o}", "name", json_text(text, n), "version",
                            at ? json_text(at + 1, strlen(at + 1)) : json_string("latest")));
    }
    return rows;
}

static json_t *describe(const struct run_trail *t, const struct sandbox_options *o,
                        const char *policy, const struct script *script,
                        const struct option_list *deps)
{
    json_t *m = trail_members(&t->subject);

    json_object_set_new(m, "tool", json_string(tool));
    if (script->code)
        json_object_set_new(m, "code", trail_digest(script->code, script->size));
    if (deps->n > 0)
        json_object_set_new(m, "dependencies", packages(deps));
    json_object_set_new(m, "image", json_text(o->image, strlen(o->image)));
    json_object_set_new(m, "policy", json_string(policy));
    json_object_set_new(m, "timeoutMs", json_integer(o->timeout_ms));
    return m;
}

int run_trail_begin(struct run_trail *t, const struct sandbox_options *o, const char *policy,
                    const struct script *script, const struct option_list *deps, struct err *e)
{
    struct trail_spec spec = {
        .path = o->audit, .outside_dir = o->files, .strict = o->audit_strict, .note = on_note};
    char       owner[32];
    struct err lost = {0};

    *t = (struct run_trail){.began_ms = clock_ms()};
    t->telling = (struct telling){NULL, subject_of, t};
    if (!o->audit)
        return 0;
    t->telling.trail = trail_open(&spec, e);
    if (!t->telling.trail)
        return -1;
    snprintf(owner, sizeof owner, "uid:%u", (unsigned)getuid());
    trail_new_call(t->subject.call);
    trail_set_owner(&t->subject, owner);
    if (trail_allows(t->telling.trail, trail_write(t->telling.trail, TRAIL_CALL,
                                                   describe(t, o, policy, script, deps), &lost)))
        return 0;
    *e = lost;
    trail_close(t->telling.trail);
    return -1;
}

void run_trail_end(struct run_trail *t, const struct run_result *r)
{
    json_t *m;

    if (!t->telling.trail)
        return;
    if (r)
        telling_run(t->telling.trail, &t->subject, &(struct telling_program){.kind = "script"}, r);
    m = trail_members(&t->subject);
    json_object_del(m, "sandbox");
    json_object_set_new(m, "tool", json_string(tool));
    json_object_set_new(m, "outcome",
                        json_string(r && r->verdict == VERDICT_OK ? "answered" : "failed"));
    json_object_set_new(m, "ms", json_integer(clock_ms() - t->began_ms));
    trail_write(t->telling.trail, TRAIL_CALL_ENDED, m, NULL);
    trail_close(t->telling.trail);
    t->telling.trail = NULL;
}
