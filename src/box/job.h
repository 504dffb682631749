/* job - JavaScript in a box: its dependencies, its files, its run or its start as a server, and
 * what it changed in /workspace/files.
 *
 * It waits for its turn, and keeps it until `done`, which is called exactly once; the job and all
 * it tells are gone after that. */
#pragma once

#include "box/box.h"
#include "box/changes.h"
#include "box/record.h"
#include "box/server.h"
#include "deps/layers.h"

struct job;

struct job_spec { /* what it points to must live until done */
    struct box             *box;
    const char             *call;  /* whose it is, for the trail; or NULL */
    bool                    again; /* after a job that was for naught: in its place */
    struct layers          *layers;
    struct files           *files; /* the watch over the box's files_dir; NULL: it has none */
    int64_t                 files_quota_bytes; /* 0: no limit */
    const char             *code;
    const struct layer_dep *deps;
    size_t                  n_deps;
    const struct policy    *policy; /* the box's from its turn on; NULL: as it was */
    int64_t                 timeout_ms;
    uint16_t                port; /* 0: no server */
    int64_t                 answer_ms;
};

struct job_result {
    struct box          *box;        /* NULL: it is gone */
    bool                 for_naught; /* the same job once more will do: see turn_is_for_naught */
    const char          *box_id, *files_dir;
    struct err           err;             /* it was not run: the box ended, … */
    bool                 files_failed;    /* … or the user's files could not be sent, … */
    bool                 install_failed;  /* … or a dependency could not be installed, … */
    bool                 never_started;   /* … or the box did not come up, … */
    bool                 no_runtime;      /* … because there is no Node for it */
    struct run_result    run;             /* of a script, or of a server that died */
    struct keep         *out, *err_out;   /* of a script, or what a server left; else NULL */
    struct server_result server;          /* of a server */
    bool                 install_skipped; /* there was nothing to install */
    const char          *install_output;  /* or NULL */
    int64_t              install_ms, run_ms;
    const struct change *files;
    size_t               n_files;
    bool                 files_cut;               /* there are more */
    char                 files_note[ERR_MSG_MAX]; /* what was not brought back, and why; or "" */
    json_t              *refused;                 /* connections; or NULL */
    const json_t        *walls;
};

struct job_ops {
    void (*progress)(void *owner, const char *sentence); /* a step, or the newest line it printed */
    void (*done)(void *owner, const struct job_result *r);
};

struct job *job_start(const struct job_spec *spec, const struct job_ops *ops, void *owner);
void        job_cancel(struct job *j); /* kills what runs; idempotent; done still comes */
