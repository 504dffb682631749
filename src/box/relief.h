/* relief - what goes first when memory is short: sandboxes that were made ahead, and Nodes that are
 * held. Nobody asked for them, and they are made again when there is memory. What somebody runs
 * stays; new sandboxes wait when it is nearly out (room.h). */
#pragma once

struct boxes;

void relief_init(struct boxes *all); /* looks once a second from now on */
void relief_done(struct boxes *all);
