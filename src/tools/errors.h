/* errors - every error text that an agent can read, in one table: what happened, and what to do.
 *
 * docs/errors.md is printed from it (`jerboa errors`), and a test provokes each row. Tools have no
 * other way to fail. */
#pragma once

#include "mcp/call.h"

/* name, text (with its printf arguments), remedy */
#define ERRORS(X)                                                                                  \
    X(UNKNOWN_SANDBOX, "Sandbox '%.80s' is unknown or has expired",                                \
      "call sandbox_initialize for a new one")                                                     \
    X(BAD_IMAGE, "%s", "leave image out for the current LTS, or name a Node.js version: node:22")  \
    X(TOO_MANY, "%s", "stop one with sandbox_stop, or try again when one has expired")             \
    X(CANNOT_START, "The sandbox could not be started: %s",                                        \
      "on the server's machine 'jerboa doctor' tells what is missing and how to mend it")          \
    X(STOPPED, "The call was not run: %s", "call sandbox_initialize for a new sandbox")            \
    X(PORT, "The port could not be published: %s", "choose another port")                          \
    X(NETWORK, "There is no network policy '%.40s' for a sandbox",                                 \
      "leave network out, or give none, npm or internet")                                          \
    X(BAD_DEPENDENCY, "The dependencies are not valid: %s",                                        \
      "give each a package name and a semver range, dist-tag or npm:name@range")                   \
    X(INSTALL, "The dependencies could not be installed: %s",                                      \
      "the code was not run; correct name or version, or try again later")                         \
    X(COMMAND, "Command %zu failed with %s:", "its stderr follows")                                \
    X(EMPTY_COMMAND, "Command %zu is empty", "give each command as a non-empty string")            \
    X(FILES, "The files directory cannot be used: %s", "tell the operator of this server")         \
    X(RUN_LOST, "Error during execution: sandbox_lost: %s",                                        \
      "the sandbox is gone; call sandbox_initialize for a new one")                                \
    X(RUN_TIMEOUT,                                                                                 \
      "Error during execution: timeout: it ran longer than %s and was killed with all "            \
      "its processes",                                                                             \
      "make it faster, give timeoutMs, or use listenOnPort for a server")                          \
    X(RUN_OUTPUT, "Error during execution: output: it printed more than %s and was killed",        \
      "print less, or write to a file below files/")                                               \
    X(RUN_OOM, "Error during execution: oom: it needed more than %s of memory (%s)",               \
      "process the data in pieces")                                                                \
    X(RUN_PIDS,                                                                                    \
      "Error during execution: pids: it wanted more than %lld processes and threads "              \
      "and ended with %s",                                                                         \
      "start fewer at once")                                                                       \
    X(RUN_DISK, "Error during execution: disk: its disk of %s is full, and it ended with %s",      \
      "write less, or write below files/")                                                         \
    X(RUN_QUOTA, "Error during execution: disk: files/ grew by more than %s, and it was killed",   \
      "write less")                                                                                \
    X(RUN_ERROR, "Error during execution: error: it ended with %s",                                \
      "its output and stack trace follow")                                                         \
    X(SERVER_DIED,                                                                                 \
      "Error during execution: error: the server ended with %s before port %d "                    \
      "answered",                                                                                  \
      "its output follows")                                                                        \
    X(SERVER_SILENT,                                                                               \
      "Error during execution: timeout: port %d did not answer within %s; the server goes "        \
      "on in the background",                                                                      \
      "look at its log, /workspace/%s")

enum error_id {
#define ERRORS_ID(name, text, remedy) ERROR_##name,
    ERRORS(ERRORS_ID)
#undef ERRORS_ID
        ERROR_COUNT
};

/* The text and the remedy as one block; the arguments of both in their order. */
void errors_text(struct mcp_call *c, enum error_id id, ...);
/* The same as the whole answer: isError, and the call is over. */
void errors_fail(struct mcp_call *c, enum error_id id, ...);

void errors_print(void); /* docs/errors.md, on stdout */
