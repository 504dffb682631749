/* ports - where init listens inside a sandbox whose connections leave through the pipe.
 *
 * The jail's rules redirect to these ports, init binds them before any code runs. They are numbers
 * that nobody else has a use for: a server of the sandbox's code cannot have them. */
#pragma once

enum {
    PORT_CONNECTIONS = 19631, /* TCP */
    PORT_LOOKUPS = 19653,     /* UDP */
};
