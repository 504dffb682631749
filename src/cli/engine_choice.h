/* engine_choice - which engine makes which sandboxes, decided once.
 *
 * `auto` is native for images of node, and docker, or podman where there is no docker or nobody
 * listens at its socket, for all others; where native cannot work, for all of them. Who has neither
 * program is on native, and nothing is looked at. */
#pragma once

#include "engine/engine.h"

struct engine_choice {
    const struct engine *of_node, *of_others;   /* of_others: or NULL, then there are no others */
    const struct engine *passed_by;             /* auto: nobody listens at its socket; or NULL */
    bool                 is_auto, native_works; /* native_works: as far as it was looked at */
    char                 why[ERR_MSG_MAX];      /* auto: why native cannot work here; "": it can, or
                                                   there was no choice */
};

int engine_choice_make(const char *name, struct engine_choice *ret, struct err *e);

/* NULL: there is no engine for this image. */
const struct engine *engine_choice_for(const struct engine_choice *choice, const char *image,
                                       struct err *e);

/* A sandbox of the image failed by `e`: which engines were wanted before, and why they were not
 * taken, is part of the sentence. */
int engine_choice_explain(const struct engine_choice *choice, const char *image, struct err *e);
