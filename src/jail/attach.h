/* attach - a dependency layer, mounted into a sandbox that runs: the layer is the lower of an
 * overlay, what code writes lies on top and goes with the sandbox.
 *
 * Entering a user namespace is for good, and the jail must stay what it is: a child does it. It
 * joins the sandbox's user and mount namespaces, not its process namespace, so that nobody inside
 * sees it. There it trusts no path that code can shape:
 *
 *   - The upper directory, the work directory and the place where the layer is for a moment are
 *     below the sandbox's disk, which is covered (PLAN_ASIDE): the descriptor that the jail got
 *     from its child before any code ran is the only way there. So they count as disk.
 *   - The target is opened without following links, and the mount is moved onto that descriptor. A
 *     link there is an error, and nothing is mounted anywhere.
 *
 * Root gives the layer the sandbox's ids (an idmapped mount) outside, with the host's rights. An
 * ordinary user may clone a mount only in a mount namespace that belongs to the sandbox's user
 * namespace: the child makes one, a copy of the host's, takes the layer from there, and leaves it.
 *
 * A second layer replaces the first, which goes for who does not use it any more, with what was
 * written on top of it. The child answers before it removes that; the next one finishes what it
 * did not. When the second cannot be put in place because code has shaped the target meanwhile,
 * there is none. */
#pragma once

#include "base/err.h"
#include "jail/steps.h"
#include "pipe/message.h"

/* Waits for the child's answer, some seconds at most. */
int  attach_layer(struct jail *j, const struct message_attach *m, struct err *e);
void attach_end(struct jail *j); /* ends a child that still removes */
