/* errors - every error text that an agent can read, in one table: what happened, and what to do.
 *
 * docs/errors.md is printed from it (`jerboa errors`), tests/integration/errors.test.mjs provokes
 * each row, and tools/only_errors.h leaves the other files here no other way to fail. A text and
 * its remedy are one format, checked by the compiler where it is used: errors_fail(c, TOO_MANY, n).
 * What others wrote (a name, an id, a registry's reason) does not make two lines of one. */
#pragma once

#include "mcp/call.h"

/* name, text (with its printf arguments), remedy (with more of them) */
#define ERRORS(X)                                                                                  \
    X(AUDIT, "The call was refused: the audit log of this server cannot be written (%s)",          \
      "tell the operator of this server, who allows nothing that is not in it")                    \
    X(UNKNOWN_SANDBOX, "Sandbox '%.80s' is unknown or has expired",                                \
      "call sandbox_initialize for a new one")                                                     \
    X(BAD_IMAGE, "Image '%.80s' is not a version of Node.js",                                      \
      "leave image out, or name one like node:lts-slim, node:24 or node:24.1.0")                   \
    X(NO_RUNTIME, "This image cannot be used: %s",                                                 \
      "leave image out, or name another one; if a registry did not answer, try again later")       \
    X(TOO_MANY, "You have %zu sandboxes, as many as this server allows",                           \
      "stop one with sandbox_stop")                                                                \
    X(OWN_BUSY,                                                                                    \
      "All %zu sandboxes that you may have are in use, and it was not your turn within %s",        \
      "try again in %lld s, with fewer calls at once, or stop one with sandbox_stop")              \
    X(BUSY, "All %zu sandboxes of this server are in use, and it was not your turn within %s",     \
      "try again in %lld s, or stop one of yours with sandbox_stop")                               \
    X(LONG_LINE, "There are %zu calls that wait for a sandbox, as many as this server lets wait",  \
      "try again in %lld s, with fewer calls at once")                                             \
    X(LOW_MEMORY,                                                                                  \
      "The server's machine has %lld MiB of memory left, too little for one more sandbox, and "    \
      "that did not change within %s",                                                             \
      "try again in %lld s, or stop what you do not need with sandbox_stop")                       \
    X(CANNOT_START, "The sandbox could not be started: %s",                                        \
      "on the server's machine 'jerboa doctor' tells what is missing and how to mend it")          \
    X(STOPPED, "The call was not run: %s", "call sandbox_initialize for a new sandbox")            \
    X(PORT, "The port could not be published: %s", "choose another port")                          \
    X(NETWORK, "This sandbox cannot have the network policy '%.40s'",                              \
      "leave network out, or give none, npm or internet")                                          \
    X(FILES, "The files directory cannot be used: %s",                                             \
      "tell the operator of this server, who chose it with --files")                               \
    X(BAD_DEPENDENCY, "The dependencies are not valid: %s",                                        \
      "give each a package name and a semver range, dist-tag or npm:name@range")                   \
    X(INSTALL, "The dependencies could not be installed: %s",                                      \
      "the code was not run; correct name or version, or try again later")                         \
    X(BAD_SEARCH, "The search is not valid: %s",                                                   \
      "give searchTerm as words joined by +, and qualifiers as words without blanks")              \
    X(NO_SEARCH, "Packages cannot be searched here: %s",                                           \
      "name packages that you know: get_dependency_types tells whether the registry has them")     \
    X(SEARCH, "The search failed: %s",                                                             \
      "try again later, or name packages that you know to get_dependency_types")                   \
    X(BAD_COMMAND, "Command %zu is empty, no string, or has a NUL in it",                          \
      "give each command as a non-empty string; none was run")                                     \
    X(COMMAND, "Command %zu failed with %s", "its stderr follows; later commands were not run")    \
    X(RUN_LOST, "Error during execution: sandbox_lost: %s",                                        \
      "run it again in a new sandbox: call sandbox_initialize, or use run_js_ephemeral")           \
    X(RUN_TIMEOUT,                                                                                 \
      "Error during execution: timeout: it ran longer than %s and was killed with all its "        \
      "processes",                                                                                 \
      "make it faster, give a larger timeoutMs, or start a server by run_js with listenOnPort")    \
    X(RUN_OUTPUT, "Error during execution: output: it printed more than %s and was killed",        \
      "print less, or write to a file below files/")                                               \
    X(RUN_OOM, "Error during execution: oom: it needed more than %s of memory (%s)",               \
      "process the data in pieces or as a stream")                                                 \
    X(RUN_PIDS,                                                                                    \
      "Error during execution: pids: it wanted more than %lld processes and threads and ended "    \
      "with %s",                                                                                   \
      "start fewer at once")                                                                       \
    X(RUN_DISK, "Error during execution: disk: its disk of %s is full, and it ended with %s",      \
      "remove what is not needed, or write below files/")                                          \
    X(RUN_NO_ROOM, "Error during execution: disk: it was not run, its disk of %s is full",         \
      "remove what is not needed with sandbox_exec, or call sandbox_initialize for a new sandbox") \
    X(RUN_QUOTA,                                                                                   \
      "Error during execution: disk: files/ grew by more than %s, or past what can be counted, "   \
      "and it was killed",                                                                         \
      "write less in one run, in fewer files and shorter paths; what it wrote is still there")     \
    X(RUN_ERROR, "Error during execution: error: it ended with %s",                                \
      "read its output below, correct the code and run it again")                                  \
    X(SERVER_DIED,                                                                                 \
      "Error during execution: error: the server ended with %s before port %u answered",           \
      "read its output below, correct the code and start it again")                                \
    X(SERVER_SILENT,                                                                               \
      "Error during execution: timeout: port %u did not answer within %s; the server goes on in "  \
      "the background",                                                                            \
      "make it listen on that port, give a larger timeoutMs, or read its log, /workspace/%s")      \
    X(LARGE_RESOURCE, "The file has %llu bytes, more than the %d MiB that a resource can have",    \
      "read parts of it with sandbox_exec or run_js")                                              \
    X(LOST_OUTPUT, "The output cannot be read: %s",                                                \
      "run it again and print less, or write to a file below files/")

#define ERRORS_FORMATS(name, text, remedy)                                                         \
    static const char errors_format_##name[] = text ": " remedy ".";                               \
    static const char errors_only_text_##name[] = text;
ERRORS(ERRORS_FORMATS)
#undef ERRORS_FORMATS

/* Text and remedy as one block of a result that has isError; the call goes on. */
#define errors_text(c, name, ...) errors_add_text(c, errors_format_##name, __VA_ARGS__)
/* The text alone, and on the lines behind it what the remedy speaks of: a program's own words. */
#define errors_quote(c, words, name, ...)                                                          \
    errors_add_quote(c, words, errors_only_text_##name, __VA_ARGS__)
/* Text and remedy as the whole answer: isError, and the call is over. */
#define errors_fail(c, name, ...) errors_end_tool(c, errors_format_##name, __VA_ARGS__)
/* The same where a result cannot fail: as an error of the protocol. */
#define errors_refuse(c, name, ...) errors_end_read(c, errors_format_##name, __VA_ARGS__)

void errors_print(void); /* docs/errors.md, on stdout */

/* ---- behind the macros ---- */

void errors_add_text(struct mcp_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void errors_add_quote(struct mcp_call *c, const char *words, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void errors_end_tool(struct mcp_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void errors_end_read(struct mcp_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
