/* events - what the audit log can tell: one table of events, one of their members.
 *
 * docs/audit.md is printed from both (`jerboa events`). Every line of an event has all its members,
 * in this order; one that is not known is null. */
#pragma once

/* name, when it is written, its members */
#define TRAIL_EVENTS(X)                                                                            \
    X(SERVER_STARTED, server_started, "the log was opened, before anybody is served",              \
      "version pid uid network http tokens sandboxes memoryBytes cpusMilli pids diskBytes")        \
    X(SERVER_STOPPED, server_stopped, "all sandboxes are gone", "ms")                              \
    X(LINES_LOST, lines_lost, "lines could not be written, and now one can", "lost why")           \
    X(CALL, call, "a client called a tool, and nothing of it was done yet",                        \
      "call owner tool sandbox code commands dependencies image policy port timeoutMs")            \
    X(CALL_ENDED, call_ended, "the call is over for the client", "call owner tool outcome ms")     \
    X(SANDBOX_MADE, sandbox_made, "somebody has a sandbox",                                        \
      "call owner sandbox image policy files memoryBytes cpusMilli pids diskBytes")                \
    X(SANDBOX_STOPPED, sandbox_stopped, "nothing of a sandbox is left", "owner sandbox why ms")    \
    X(RUN_ENDED, run_ended, "a script, a command or a server has ended",                           \
      "call owner sandbox program number verdict exitCode signal wallMs cpuMs peakMemoryBytes")    \
    X(CONNECTED, connected, "a connection to the outside is made, before it carries a byte",       \
      "call owner sandbox connection host address targetPort")                                     \
    X(DISCONNECTED, disconnected, "that connection is over",                                       \
      "owner sandbox connection host address targetPort sentBytes receivedBytes ms")               \
    X(REFUSED, refused, "a connection or a lookup was refused, or failed",                         \
      "call owner sandbox host targetPort rule")                                                   \
    X(MORE_REFUSED, more_refused, "so many further ones since the last call, not told one by one", \
      "call owner sandbox refusals")

/* name, what it is */
#define TRAIL_MEMBERS(X)                                                                           \
    X("time", "UTC, with milliseconds")                                                            \
    X("server", "the process that wrote the line, by a random word")                               \
    X("line", "its lines from 1 on; a number that is missing was lost")                            \
    X("event", "one of the table above")                                                           \
    X("address", "the IP address that was connected to")                                           \
    X("call", "joins the lines of one call; null: nobody had his turn")                            \
    X("code", "`{sha256, bytes}` of the code; null: none, or a file below --dir")                  \
    X("commands", "`[{sha256, bytes}]` of each shell command; null: none")                         \
    X("connection", "its number in the sandbox")                                                   \
    X("cpuMs", "processor time")                                                                   \
    X("cpusMilli", "processors, in thousandths")                                                   \
    X("dependencies", "`[{name, version}]` as asked for, no address behind its `//`; null: none")  \
    X("diskBytes", "limit of /workspace, /tmp and HOME")                                           \
    X("exitCode", "of the main process; null: it has none")                                        \
    X("files", "whether /workspace/files is a directory of this machine")                          \
    X("host", "the name that code asked for, or an address")                                       \
    X("http", "where HTTP is served; null: it is not")                                             \
    X("image", "the image that was asked for; null: the default")                                  \
    X("lost", "how many lines")                                                                    \
    X("memoryBytes", "limit of memory")                                                            \
    X("ms", "how long it lasted")                                                                  \
    X("network", "the operator's network policy")                                                  \
    X("number", "of a command among those of its call, from 1 on; null: it is none")               \
    X("outcome", "`answered`, `failed` (the client reads why), `cancelled`")                       \
    X("owner", "`token:NAME`, `stdio`, `session:` and the beginning of its id, `anyone`; `uid:N`") \
    X("peakMemoryBytes", "the most memory that it had at once; null: nobody saw it")               \
    X("pid", "of the server")                                                                      \
    X("pids", "limit of processes and threads")                                                    \
    X("policy", "the sandbox's own network policy; null: the operator's alone; `jerboa run`: its") \
    X("port", "inside, to be reached from this machine; null: none")                               \
    X("program", "`script`, `command`, `server`")                                                  \
    X("receivedBytes", "from outside")                                                             \
    X("refusals", "how many")                                                                      \
    X("rule", "which rule refused it")                                                             \
    X("sandbox", "the beginning of its id: the whole can be a right")                              \
    X("sandboxes", "limit of their number")                                                        \
    X("sentBytes", "to the outside")                                                               \
    X("signal", "that ended the main process; null: none did")                                     \
    X("targetPort", "that was connected to; null: not known yet")                                  \
    X("timeoutMs", "as it was asked for; null: the default")                                       \
    X("tokens", "whether HTTP demands them")                                                       \
    X("tool", "its name; `jerboa run`")                                                            \
    X("uid", "of the server")                                                                      \
    X("verdict", "as the client reads it")                                                         \
    X("version", "of Jerboa")                                                                      \
    X("wallMs", "time by the clock")                                                               \
    X("why", "the reason, as a sentence or a few words")

enum trail_event {
#define TRAIL_ENUM(id, name, when, members) TRAIL_##id,
    TRAIL_EVENTS(TRAIL_ENUM)
#undef TRAIL_ENUM
        TRAIL_EVENT_COUNT
};

const char *events_name(enum trail_event event);
const char *events_members(enum trail_event event); /* words with blanks between */
void        events_print(void);                     /* docs/audit.md, on stdout */
