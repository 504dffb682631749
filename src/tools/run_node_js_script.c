/* run-node-js-script - a prompt: the user's wish, and how to write Node.js code for this place. */
#include "base/fd.h"
#include "base/str.h"
#include "tools/tools.h"

static const char guidelines[] =
    "Write and run Node.js code for the request below with the tools of this server.\n\n"
    "How to write it:\n"
    "- One ES module: `import`, not `require`; top-level `await` is fine; Node's own modules by "
    "their `node:` names.\n"
    "- Prefer what Node has (fetch, node:fs/promises, node:crypto, node:test) to packages. What "
    "you import from npm goes into `dependencies` with a version range; do not call npm in code.\n"
    "- Print results with console.log, briefly: only what answers the request. Large data belongs "
    "into a file.\n"
    "- Files that the user is to get go to `./files/`; images written there are shown. Everything "
    "else in /workspace is scratch.\n"
    "- Let errors be thrown: the stack trace comes back. Do not catch only to print.\n"
    "- Close servers, timers and connections, so that the script ends by itself; a server that is "
    "to stay runs with `listenOnPort`, listens on that port, and is tried with sandbox_exec or "
    "another run.\n"
    "- Network: {network}. A refused connection is named in the result with its reason.\n"
    "- Limits: {timeout}, {memory} of memory, {cpus} CPU.\n\n"
    "Which tool: one script, run_js_ephemeral; several steps on the same files, or a server, "
    "sandbox_initialize, then run_js and sandbox_exec, and sandbox_stop at the end. When a run "
    "fails, read its verdict and stderr, correct the code, and run it again.\n\n"
    "The request:\n";

static void get(struct mcp_call *c)
{
    const char    *wish = json_string_value(json_object_get(mcp_call_arguments(c), "prompt"));
    autofree char *how = words_fill(&tools_of(c)->words, guidelines);
    autofree char *text = str_format("%s%s", how, wish ? wish : "");

    mcp_call_message_text(c, "user", text);
    mcp_call_done(c);
}

static const struct mcp_prompt_argument arguments[] = {
    {"prompt", "What the code is to do, in your own words.", true},
    {0},
};

const struct mcp_prompt tools_prompts[] = {
    {.name = "run-node-js-script",
     .title = "Run a Node.js script",
     .description = "Write and run Node.js code for a request, by this server's guidelines.",
     .arguments = arguments,
     .get = get},
    {0},
};
